//! The orders of a warehouse: the list of the orders that its people pick and ship.

use std::collections::{BTreeSet, HashMap};

use super::super::{Order, OrderLine, OrderStatus, Product, ProductId, WarehouseId};
use super::index::{Partition, Selection};
use super::{OrdersTable, items, keys};
use billing::Label;
use dynamo::{Entity as _, Key, Page, Paging, TableError, key_of};

/// An order of a warehouse with everything that a packer needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderToPack {
    pub order: Order,
    pub lines: Vec<NamedLine>,
}

/// A line of an order with the name of its product.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedLine {
    pub line: OrderLine,
    /// The name of the product; `None` if the product does not exist any more.
    pub name: Option<Label>,
}

impl OrdersTable {
    /// Returns the orders of a warehouse that have the status `status`, sorted by the time of the payment: oldest first,
    /// or newest first. Queries GSI-1 with `SK = warehouse` and the prefix of the status in `Data`, and reads the orders and
    /// the names of their products with a BatchGetItem request for each 100 items. Leaves out an order that has another
    /// status by now, because the index can lag behind the table.
    pub async fn orders_of_warehouse(
        &self,
        warehouse: &WarehouseId,
        status: OrderStatus,
        is_newest_first: bool,
        paging: &Paging,
    ) -> Result<Page<OrderToPack>, TableError> {
        let page = self.page_of_warehouse(warehouse, status, is_newest_first, paging).await?;
        let page = page.read(|item| items::read_warehouse_edge(&item));
        let products: BTreeSet<ProductId> =
            page.items.iter().flat_map(|(_, lines)| lines).map(|line| line.product.clone()).collect();
        let product_keys = products.iter().map(|id| keys::key_of_own_item(keys::key_of_product(id)));
        let all_keys: Vec<Key> = page.items.iter().map(|(key, _)| key.clone()).chain(product_keys).collect();
        let (mut orders, mut names) = (HashMap::new(), HashMap::new());
        let mut unreadable = Vec::new();
        for item in self.0.get_many(&all_keys).await? {
            let key = key_of(&item);
            let read = match key.pk.starts_with(keys::ORDERS) {
                true => Order::from_item(&item).map(|order| drop(orders.insert(key.pk, order))),
                false => Product::from_item(&item).map(|product| drop(names.insert(product.id, product.name))),
            };
            unreadable.extend(read.err());
        }
        let mut to_pack = Page { items: Vec::new(), unreadable: page.unreadable, next: page.next };
        to_pack.unreadable.append(&mut unreadable);
        for (key, lines) in page.items {
            let Some(order) = orders.remove(&key.pk).filter(|order: &Order| order.status == status) else { continue };
            let named = |line: OrderLine| NamedLine { name: names.get(&line.product).cloned(), line };
            to_pack.items.push(OrderToPack { order, lines: lines.into_iter().map(named).collect() });
        }
        Ok(to_pack)
    }

    /// Returns a list page of the edges from the orders with the status `status` to `warehouse`.
    async fn page_of_warehouse(
        &self,
        warehouse: &WarehouseId,
        status: OrderStatus,
        is_newest_first: bool,
        paging: &Paging,
    ) -> Result<Page<dynamo::Item>, TableError> {
        let prefix = keys::status_prefix(status);
        let warehouse = keys::key_of_warehouse(warehouse);
        let limit = paging.limit.map(|limit| limit.saturating_add(1));
        let selection = Selection::with_sort_key_prefix(prefix.clone());
        let selection = Selection { is_ascending: !is_newest_first, limit, ..selection };
        let after = paging.after.as_ref().and_then(|cursor| Self::position_in_index(cursor, &prefix, &warehouse));
        let mut edges = self.query_after(&Partition::edges_to(warehouse), selection, after).first(limit).await?;
        let has_more = paging.limit.is_some_and(|limit| edges.len() > limit);
        edges.truncate(paging.limit.unwrap_or(usize::MAX));
        let next = match edges.last().filter(|_| has_more) {
            Some(last) => Some(Self::cursor_at(last, &prefix)?),
            None => None,
        };
        Ok(Page { items: edges, unreadable: Vec::new(), next })
    }
}
