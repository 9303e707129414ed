//! Reading and writing of products, their stock, and the products that are shipped for each SKU.

use futures::future::try_join;

use crate::fulfilment::order_lines::order_lines_as_text;
use crate::fulfilment::orders::{ProductOrder, read_product_order};
use crate::items;
use crate::items::{NoAttributes, OrderLineQuantityItem, StoredSku, new_item, new_relation_item};
use crate::partition_queries::ItemSelection;
use crate::write_transaction::{WriteOutcome, WriteTransaction};
use crate::{OrdersTable, keys};
use billing::{ActionKind, ItemChange, Label, Sku};
use dynamo::{Entity as _, Item, Key, Page, Paging, TableError, key_of_item};
use orders::{DateRange, OrderLine, OrderStatus, Product, ProductId, Stock, WarehouseId};

/// Returns the relations of `product`: the items by which GSI-1 finds it by its name, and in the list of all products.
pub(crate) fn relations_of_product(product: &Product) -> [Item; 2] {
    let partition = keys::key_of_product(&product.id);
    let to = |end: String| new_relation_item(partition.clone(), end, &partition);
    [to(keys::key_of_product_name(product.name.as_str())), to(keys::ALL_PRODUCTS.to_owned())]
}

impl OrdersTable {
    /// Creates a product without stock in one transaction, which also writes the items by which GSI-1 finds the
    /// product: by its name, and in the list of all products. Returns `Refused` if the product exists.
    pub async fn create_product(&self, product: &Product) -> Result<WriteOutcome, TableError> {
        let new = Product { total_stock: 0, ..product.clone() };
        let writes = self.transaction().create(new.to_item());
        let change = || ItemChange::new(&product.id, 1).field("name", None, Some(product.name.as_str()));
        let writes = relations_of_product(product).into_iter().fold(writes, WriteTransaction::create);
        writes.add_action_entry(ActionKind::PutProduct, change).commit().await
    }

    /// Renames a product, and replaces the relation item by which GSI-1 finds it by name, in one transaction. Returns
    /// `Refused` if the stored product changed since it was read.
    pub async fn rename_product(&self, product: &Product, name: &Label) -> Result<WriteOutcome, TableError> {
        let partition = keys::key_of_product(&product.id);
        let by_name = |name: &Label| keys::key_of_relation(partition.clone(), keys::key_of_product_name(name.as_str()));
        let (old, new) = (by_name(&product.name), by_name(name));
        let mut writes = self.transaction().change(product, &Product { name: name.clone(), ..product.clone() });
        if old != new {
            writes = writes.delete_if_present(old).create(new_relation_item(new.pk, new.sk, partition));
        }
        let version = product.version.saturating_add(1);
        let change =
            || ItemChange::new(&product.id, version).field("name", Some(product.name.as_str()), Some(name.as_str()));
        writes.add_action_entry(ActionKind::PutProduct, change).commit().await
    }

    /// Returns a product with its total stock (access pattern 13), or `None` if the product does not exist. Sends one
    /// strongly consistent GetItem request for the product's item, which contains the total: each transaction that changes
    /// the stock in a warehouse also changes the total.
    pub async fn get_product(&self, id: &ProductId) -> Result<Option<Product>, TableError> {
        let item = self.dynamo.get(keys::key_of_own_item(keys::key_of_product(id))).await?;
        item.map(|item| Product::from_item(&item)).transpose()
    }

    /// Returns all products, sorted by id. Queries the partition `PRODUCTS` of GSI-1.
    pub async fn get_products(&self, paging: &Paging) -> Result<Page<ProductId>, TableError> {
        let page = self.page_of_entities_related_to(keys::ALL_PRODUCTS, keys::PRODUCT_PREFIX, paging).await?;
        Ok(page.read(|item| items::product_id_in(&item)))
    }

    /// Returns the orders that contain a product, have one of `statuses` and were placed in `days`, oldest first.
    /// Queries the product's partition of GSI-1 with a range of `Data` (status and time of the payment). Sends one
    /// query for each status, in parallel.
    pub async fn orders_of_product(
        &self,
        product: &ProductId,
        statuses: &[OrderStatus],
        days: DateRange,
        paging: &Paging,
    ) -> Result<Page<ProductOrder>, TableError> {
        let page = self.page_of_orders_related_to(&keys::key_of_product(product), statuses, days, paging).await?;
        Ok(page.read(|item| read_product_order(&item)))
    }

    /// Returns the stock of a product in each warehouse, or only in `warehouse` if it is set (access pattern 12).
    /// Queries the table with `PK = product`. `SK` must begin with the key prefix of warehouses, or with the key of
    /// `warehouse`.
    pub async fn get_stock(
        &self,
        product: &ProductId,
        warehouse: Option<&WarehouseId>,
    ) -> Result<Vec<Stock>, TableError> {
        let prefix = warehouse.map_or_else(|| keys::WAREHOUSE_PREFIX.to_owned(), keys::key_of_warehouse);
        let items =
            self.query_partition(keys::key_of_product(product), ItemSelection::with_sort_key_prefix(prefix)).await?;
        let mut stock = items.iter().map(items::read_stock_item).collect::<Result<Vec<_>, _>>()?;
        // The key of one warehouse can be a prefix of the key of another warehouse.
        stock.retain(|stock| warehouse.is_none_or(|wanted| stock.warehouse == *wanted));
        Ok(stock)
    }

    /// Returns the orders that contain a product, and the stock of the product in each warehouse (access pattern 8).
    /// Sends two queries in parallel. The query for the orders reads the product's partition of GSI-1: in the items
    /// that relate orders to the product, the key of the product is `SK`, the partition key of GSI-1. The query for the
    /// stock is access pattern 12.
    pub async fn orders_and_stock_of_product(
        &self,
        product: &ProductId,
    ) -> Result<(Vec<ProductOrder>, Vec<Stock>), TableError> {
        let orders = self.query_relations_to(keys::key_of_product(product), ItemSelection::all_items());
        let (orders, stock) = try_join(orders, self.get_stock(product, None)).await?;
        // Keep only the items that relate an order to the product. The items that relate a SKU to the product have the
        // same sort key, as does the product's own item, but GSI-1 does not contain them, because they have no
        // attribute `Data`.
        let orders =
            orders.iter().filter(|item| key_of_item(item).pk.starts_with(keys::ORDER_PREFIX)).map(read_product_order);
        Ok((orders.collect::<Result<_, _>>()?, stock))
    }

    /// Returns the products that are shipped for each paid month of `sku`, and their quantities. The list is empty if
    /// the SKU has no products. Queries the table with `PK = SKU`.
    pub async fn lines_of_sku(&self, sku: &Sku) -> Result<Vec<OrderLine>, TableError> {
        let items = self
            .query_partition(keys::key_of_sku(sku), ItemSelection::with_sort_key_prefix(keys::PRODUCT_PREFIX))
            .await?;
        items.iter().map(items::read_order_line).collect()
    }

    /// Replaces the products that are shipped for each paid month of `sku`. Existing orders keep their lines. Sends a
    /// query and then, if the products differ, a transaction. Returns `Refused` if another request changed the SKU between
    /// the query and the transaction.
    pub async fn set_lines_of_sku(&self, sku: &Sku, lines: &[OrderLine]) -> Result<WriteOutcome, TableError> {
        let (mut stored, mut old) = (None, Vec::new());
        for item in self.query_partition(keys::key_of_sku(sku), ItemSelection::all_items()).await? {
            let Key { pk, sk } = key_of_item(&item);
            if sk == pk {
                stored = Some(StoredSku::from_item(&item)?);
            } else if sk.starts_with(keys::PRODUCT_PREFIX) {
                old.push(items::read_order_line(&item)?);
            }
        }
        let is_same = old.len() == lines.len() && lines.iter().all(|line| old.contains(line));
        if stored.is_some() && is_same {
            return Ok(WriteOutcome::Done);
        }
        let stored_version = stored.as_ref().map_or(0, |stored| stored.version);
        let mut writes = match stored {
            None => self.transaction().create(StoredSku { sku: sku.clone(), version: 1 }.to_item()),
            Some(stored) => self.transaction().change(&stored, &stored),
        };
        for removed in old.iter().filter(|old| lines.iter().all(|line| line.product != old.product)) {
            writes =
                writes.delete(keys::key_of_relation(keys::key_of_sku(sku), keys::key_of_product(&removed.product)));
        }
        for line in lines.iter().filter(|line| !old.contains(line)) {
            let key = keys::key_of_relation(keys::key_of_sku(sku), keys::key_of_product(&line.product));
            writes = writes.put(new_item(key, None, &OrderLineQuantityItem { quantity: line.quantity }));
        }
        let next_version = stored_version.saturating_add(1);
        let change = || {
            ItemChange::new(sku, next_version).field("products", order_lines_as_text(&old), order_lines_as_text(lines))
        };
        writes.add_action_entry(ActionKind::PutSku, change).commit().await
    }

    /// Returns whether it was reported to the operator before that `sku` has no products. Sends one GetItem request.
    pub async fn is_without_products_reported(&self, sku: &Sku) -> Result<bool, TableError> {
        Ok(self.dynamo.get(keys::key_of_no_products_report(sku)).await?.is_some())
    }

    /// Stores the record that it was reported to the operator that `sku` has no products. Does nothing if the record
    /// exists.
    pub async fn mark_without_products_reported(&self, sku: &Sku) -> Result<(), TableError> {
        let item: Item = new_item(keys::key_of_no_products_report(sku), None, &NoAttributes {});
        self.dynamo.put_if_absent(item).await.map(drop)
    }
}
