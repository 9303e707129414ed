//! The orders of a warehouse: the list of the orders that the packers of the warehouse pick and ship.

use std::collections::{BTreeSet, HashMap};

use crate::list_pages::{OrderList, PartitionRange};
use crate::partition_queries::QueriedPartition;
use crate::{OrdersTable, items, keys};
use billing::Label;
use dynamo::{Entity as _, Key, Page, Paging, TableError};
use orders::{Order, OrderLine, OrderStatus, Product, ProductId, WarehouseId, range_of_all_days};

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
    /// The name of the product; `None` if the product was added to the order so recently that the index does not
    /// contain this change.
    pub name: Option<Label>,
}

impl OrdersTable {
    /// Returns the orders of a warehouse that have the status `status`, sorted by the time of the payment: oldest
    /// first, or newest first. Queries the warehouse's partition of GSI-1 with the prefix of the status in `Data`, and
    /// reads the orders and the names of their products with a BatchGetItem request for each 100 items. The index can
    /// lag behind the table, so an order is left out if its own item already has another status.
    pub async fn orders_of_warehouse(
        &self,
        warehouse: &WarehouseId,
        status: OrderStatus,
        is_newest_first: bool,
        paging: &Paging,
    ) -> Result<Page<OrderToPack>, TableError> {
        let partition = QueriedPartition::relations_to(keys::key_of_warehouse(warehouse));
        let range = PartitionRange::of_orders(partition, 0, status, range_of_all_days());
        let page = self.page_of_range(OrderList::OfWarehouse(warehouse), &range, !is_newest_first, paging).await?;
        let page = page.read(|item| items::read_warehouse_relation(&item));
        let products: BTreeSet<ProductId> =
            page.items.iter().flat_map(|(_, lines)| lines).map(|line| line.product.clone()).collect();
        let product_keys = products.iter().map(|id| keys::key_of_own_item(keys::key_of_product(id)));
        let all_keys: Vec<Key> = page.items.iter().map(|(key, _)| key.clone()).chain(product_keys).collect();
        let mut own_items = self.dynamo.get_all(&all_keys).await?;
        let product_items = own_items.split_off(page.items.len());
        let mut to_pack = Page { items: Vec::new(), unreadable: page.unreadable, next: page.next };
        let mut names = HashMap::new();
        for item in product_items.into_iter().flatten() {
            match Product::from_item(&item) {
                Ok(product) => drop(names.insert(product.id, product.name)),
                Err(error) => to_pack.unreadable.push(error),
            }
        }
        for ((key, lines), item) in page.items.into_iter().zip(own_items) {
            // Orders are never deleted. So if the index contains an order whose own item does not exist, data is
            // damaged, and the list reports the order as unreadable.
            let missing =
                || TableError::unreadable(key, "the index contains the order, but its own item does not exist");
            match item.ok_or_else(missing).and_then(|item| Order::from_item(&item)) {
                Ok(order) if order.status == status => {
                    // The products of the order can have changed since the index was updated. Then the name of an added
                    // product was not read.
                    let lines = if order.lines.is_empty() { lines } else { order.lines.clone() };
                    let named = |line: OrderLine| NamedLine { name: names.get(&line.product).cloned(), line };
                    to_pack.items.push(OrderToPack { order, lines: lines.into_iter().map(named).collect() });
                }
                Ok(_) => {}
                Err(error) => to_pack.unreadable.push(error),
            }
        }
        Ok(to_pack)
    }
}
