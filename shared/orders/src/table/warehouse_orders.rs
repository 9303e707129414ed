//! The orders of a warehouse: the list of the orders that its people pick and ship.

use std::collections::{BTreeSet, HashMap};

use super::super::{Order, OrderLine, OrderStatus, Product, ProductId, WarehouseId, all_days};
use super::index::Partition;
use super::pages::{OrderList, PartitionRange};
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
    /// The name of the product; `None` if it is not known, because the product was added to the order a moment ago.
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
        let partition = Partition::edges_to(keys::key_of_warehouse(warehouse));
        let range = PartitionRange::of_orders(partition, 0, status, all_days());
        let page = self.page_of_range(OrderList::OfWarehouse(warehouse), &range, !is_newest_first, paging).await?;
        let page = page.read(|item| items::read_warehouse_edge(&item));
        let products: BTreeSet<ProductId> =
            page.items.iter().flat_map(|(_, lines)| lines).map(|line| line.product.clone()).collect();
        let product_keys = products.iter().map(|id| keys::key_of_own_item(keys::key_of_product(id)));
        let all_keys: Vec<Key> = page.items.iter().map(|(key, _)| key.clone()).chain(product_keys).collect();
        let (mut orders, mut names) = (HashMap::new(), HashMap::new());
        let mut unreadable = Vec::new();
        for item in self.dynamo.get_all(&all_keys).await?.into_iter().flatten() {
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
            // The products can have changed since the index was updated. Then the name of a new product is not known yet.
            let lines = if order.lines.is_empty() { lines } else { order.lines.clone() };
            let named = |line: OrderLine| NamedLine { name: names.get(&line.product).cloned(), line };
            to_pack.items.push(OrderToPack { order, lines: lines.into_iter().map(named).collect() });
        }
        Ok(to_pack)
    }
}
