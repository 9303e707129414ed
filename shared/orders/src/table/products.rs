//! Products, what SKUs are made of, and stock.

use futures::future::try_join;

use ulid::Ulid;

use super::super::{Days, OrderLine, OrderStatus, Product, ProductId, Stock, WarehouseId};
use super::index::Wanted;
use super::items::{self, ArrivalItem, QuantityItem, STOCK, StoredSku, TOTAL_STOCK, edge, row};
use super::orders::{ProductOrder, product_order};
use super::writes::Written;
use super::{OrdersTable, keys};
use billing::{Label, Sku};
use dynamo::{Entity as _, Item, Key, Page, Paging, TableError, from_item, key_of};

/// The marker of a SKU that was told to have no products.
#[derive(serde::Serialize)]
struct Marker {}

impl OrdersTable {
    /// Creates `product`, which has no stock yet; `Refused` if there is one. Own item and two edges, in one transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_product(&self, product: &Product) -> Result<Written, TableError> {
        let partition = keys::product(&product.id);
        let new = Product { total_stock: 0, ..product.clone() };
        let writes = self.writes().create(new.to_item());
        let writes = writes.create(edge(partition.clone(), keys::product_name(product.name.as_str()), &partition));
        writes.create(edge(partition.clone(), keys::ALL_PRODUCTS, &partition)).commit().await
    }

    /// Gives `product` another name; `Refused` if it is not as it was read. Own item and the edge of its name, in one transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn rename_product(&self, product: &Product, name: &Label) -> Result<Written, TableError> {
        let partition = keys::product(&product.id);
        let by_name = |name: &Label| keys::edge(partition.clone(), keys::product_name(name.as_str()));
        let (old, new) = (by_name(&product.name), by_name(name));
        let mut writes = self.writes().change(product, &Product { name: name.clone(), ..product.clone() });
        if old != new {
            writes = writes.delete(old).create(edge(new.pk, new.sk, partition));
        }
        writes.commit().await
    }

    /// Pattern 13: a product with its total stock. GetItem of its own item, in which the total is kept by the transactions
    /// that move stock.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn product(&self, id: &ProductId) -> Result<Option<Product>, TableError> {
        let item = self.0.get(keys::own(keys::product(id))).await?;
        item.map(|item| Product::from_item(&item)).transpose()
    }

    /// All products, by their ids. GSI-1, `SK = PRODUCTS`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn products(&self, paging: &Paging) -> Result<Page<ProductId>, TableError> {
        let page = self.page_of_entities(keys::ALL_PRODUCTS, keys::PRODUCTS, paging).await?;
        Ok(page.read(|item| items::product_of(&item)))
    }

    /// The orders of a product in `statuses`, placed in `days`, the oldest first. GSI-1, `SK = product`, `Data` between status and
    /// days: one query for each status, in parallel.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn orders_of_product(
        &self,
        product: &ProductId,
        statuses: &[OrderStatus],
        days: Days,
        paging: &Paging,
    ) -> Result<Page<ProductOrder>, TableError> {
        let page = self.page_of_orders(&keys::product(product), statuses, days, paging).await?;
        Ok(page.read(|item| product_order(&item)))
    }

    /// Pattern 12: the stock of a product by warehouse. Query `PK = product`, `SK` begins with the warehouses' prefix; with a
    /// warehouse, that one's.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn stock(&self, product: &ProductId, warehouse: Option<&WarehouseId>) -> Result<Vec<Stock>, TableError> {
        let prefix = warehouse.map_or_else(|| keys::WAREHOUSES.to_owned(), keys::warehouse);
        let items = self.in_partition(keys::product(product), Wanted::beginning_with(prefix)).await?;
        let mut stock = items.iter().map(items::read_stock).collect::<Result<Vec<_>, _>>()?;
        // One's name may begin with another's.
        stock.retain(|stock| warehouse.is_none_or(|wanted| stock.warehouse == *wanted));
        Ok(stock)
    }

    /// Pattern 8: the orders of a product, and its stock by warehouse. Both cannot be in one partition, since in each the product
    /// is the other end: GSI-1, `SK = product`, for the orders; and, in parallel, pattern 12.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn product_orders(&self, product: &ProductId) -> Result<(Vec<ProductOrder>, Vec<Stock>), TableError> {
        let orders = self.leading_to(keys::product(product), Wanted::all());
        let (orders, stock) = try_join(orders, self.stock(product, None)).await?;
        // Its SKUs' lines and its own edges have no Data, or lead elsewhere.
        let orders = orders.iter().filter(|item| key_of(item).pk.starts_with(keys::ORDERS)).map(product_order);
        Ok((orders.collect::<Result<_, _>>()?, stock))
    }

    /// `quantity` more of a product have arrived in a warehouse, by the `delivery` of that name, which counts once. One
    /// transaction, refused at its first place if that delivery was counted; elsewhere if there is no such product.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn add_stock(
        &self,
        product: &ProductId,
        warehouse: &WarehouseId,
        quantity: u64,
        delivery: Ulid,
    ) -> Result<Written, TableError> {
        let (all, here) = self.stock_keys(product, warehouse);
        let is_new = self.0.get(here.clone()).await?.is_none();
        let arrival = ArrivalItem { warehouse: Some(warehouse.clone()), stock: quantity };
        let counted = row(keys::arrival(product, delivery), None, &arrival);
        let writes = self.writes().create(counted).give(all, TOTAL_STOCK, quantity);
        let writes = match is_new {
            true => writes.create(row(here, None, &items::StockItem { stock: quantity })),
            false => writes.give(here, STOCK, quantity),
        };
        writes.commit().await
    }

    /// Whether what was counted as `delivery` is `quantity` in `warehouse`. GetItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn is_delivery(
        &self,
        product: &ProductId,
        warehouse: &WarehouseId,
        quantity: u64,
        delivery: Ulid,
    ) -> Result<bool, TableError> {
        let item = self.0.get(keys::arrival(product, delivery)).await?;
        let counted = item.map(|item| from_item::<ArrivalItem>(&item)).transpose()?;
        let is_there = |counted: &ArrivalItem| counted.warehouse.as_ref().is_none_or(|counted| counted == warehouse);
        Ok(counted.is_some_and(|counted| counted.stock == quantity && is_there(&counted)))
    }

    /// What lies in a warehouse when it begins; `Refused` if anything was ever said of that. One transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn open_stock(
        &self,
        product: &ProductId,
        warehouse: &WarehouseId,
        quantity: u64,
    ) -> Result<Written, TableError> {
        let (all, here) = self.stock_keys(product, warehouse);
        let opened = row(here, None, &items::StockItem { stock: quantity });
        self.writes().give(all, TOTAL_STOCK, quantity).create(opened).commit().await
    }

    fn stock_keys(&self, product: &ProductId, warehouse: &WarehouseId) -> (Key, Key) {
        let partition = keys::product(product);
        (keys::own(partition.clone()), keys::edge(partition, keys::warehouse(warehouse)))
    }

    /// What `sku` is made of. Query `PK = SKU`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn lines_of(&self, sku: &Sku) -> Result<Vec<OrderLine>, TableError> {
        let items = self.in_partition(keys::sku(sku), Wanted::beginning_with(keys::PRODUCTS)).await?;
        items.iter().map(items::read_line).collect()
    }

    /// `sku` is made of `lines` from now on; orders that were placed keep theirs. Query and one transaction; `Refused` if it was
    /// changed meanwhile.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn set_lines(&self, sku: &Sku, lines: &[OrderLine]) -> Result<Written, TableError> {
        let (mut stored, mut old) = (None, Vec::new());
        for item in self.in_partition(keys::sku(sku), Wanted::all()).await? {
            let Key { pk, sk } = key_of(&item);
            if sk == pk {
                stored = Some(StoredSku::from_item(&item)?);
            } else if sk.starts_with(keys::PRODUCTS) {
                old.push(items::read_line(&item)?);
            }
        }
        let mut writes = match stored {
            None => self.writes().create(StoredSku { sku: sku.clone(), version: 1 }.to_item()),
            Some(stored) => self.writes().change(&stored, &stored),
        };
        for gone in old.iter().filter(|old| lines.iter().all(|line| line.product != old.product)) {
            writes = writes.delete(keys::edge(keys::sku(sku), keys::product(&gone.product)));
        }
        for line in lines.iter().filter(|line| !old.contains(line)) {
            let key = keys::edge(keys::sku(sku), keys::product(&line.product));
            writes = writes.put(row(key, None, &QuantityItem { quantity: line.quantity }));
        }
        writes.commit().await
    }

    /// Whether it was told that `sku` has no products. GetItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn is_told_without_products(&self, sku: &Sku) -> Result<bool, TableError> {
        Ok(self.0.get(keys::without_products(sku)).await?.is_some())
    }

    /// Notes that it was told. Put if absent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn note_without_products(&self, sku: &Sku) -> Result<(), TableError> {
        let item: Item = row(keys::without_products(sku), None, &Marker {});
        self.0.put_if_absent(item).await.map(drop)
    }
}
