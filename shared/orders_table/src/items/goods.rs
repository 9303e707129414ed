//! The stored items of products, stock, SKUs and warehouses.

use serde::{Deserialize, Serialize};

use crate::items::{DATA, id_in_partition_key, id_in_sort_key};
use crate::{OrdersTable, keys};
use billing::{Label, Sku};
use dynamo::{Entity, Instant, Item, Key, TableError, from_item, key_of_item, s};
use orders::{PlaceId, Product, ProductId, Stock, Warehouse, WarehouseId};

/// The attributes of the item of a product.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ProductItem {
    name: Label,
    total_stock: u64,
    created_date: Instant,
    version: u64,
}

dynamo::attributes!(ProductItem { TOTAL_STOCK = total_stock, });

impl Entity<OrdersTable> for Product {
    type Attributes = ProductItem;

    fn key(&self) -> Key {
        keys::key_of_own_item(keys::key_of_product(&self.id))
    }

    fn attributes(&self) -> ProductItem {
        ProductItem {
            name: self.name.clone(),
            total_stock: self.total_stock,
            created_date: Instant(self.created_at),
            version: self.version,
        }
    }

    fn read(key: Key, read: ProductItem) -> Result<Self, TableError> {
        let ProductItem { name, total_stock, created_date, version } = read;
        Ok(Self {
            id: id_in_partition_key(&key, keys::PRODUCT_PREFIX)?,
            name,
            total_stock,
            created_at: created_date.0,
            version,
        })
    }
}

/// The attributes of the item with the stock of a product in a warehouse.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StockItem {
    /// The number of pieces.
    pub stock: u64,
    /// The number of recorded movements of this stock.
    #[serde(default)]
    pub movements: u64,
    /// Whether the stock is the sum of its recorded movements. Absent in a stock from before movements were recorded,
    /// until its opening movement is written: a movement of the pieces that the recorded movements do not explain.
    #[serde(default)]
    pub is_opened: bool,
}

dynamo::attributes!(StockItem { STOCK = stock, MOVEMENTS = movements, IS_OPENED = is_opened, });

impl StockItem {
    /// Creates the attributes of a new stock of `pieces` pieces. The same transaction writes the first movement of this
    /// stock.
    pub fn new(pieces: u64) -> Self {
        Self { stock: pieces, movements: 1, is_opened: true }
    }
}

/// Reads the stock of a product in a warehouse from its item.
pub(crate) fn read_stock_item(item: &Item) -> Result<Stock, TableError> {
    let StockItem { stock, .. } = from_item(item)?;
    let warehouse = id_in_sort_key(&key_of_item(item), keys::WAREHOUSE_PREFIX)?;
    Ok(Stock { product: id_in_partition_key(&key_of_item(item), keys::PRODUCT_PREFIX)?, warehouse, quantity: stock })
}

/// The attributes of the item of a warehouse.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WarehouseItem {
    name: Label,
    region: PlaceId,
    version: u64,
}

impl Entity<OrdersTable> for Warehouse {
    type Attributes = WarehouseItem;

    fn key(&self) -> Key {
        keys::key_of_own_item(keys::key_of_warehouse(&self.id))
    }

    fn attributes(&self) -> WarehouseItem {
        WarehouseItem { name: self.name.clone(), region: self.region.clone(), version: self.version }
    }

    fn read(key: Key, read: WarehouseItem) -> Result<Self, TableError> {
        let WarehouseItem { name, region, version } = read;
        Ok(Self { id: id_in_partition_key(&key, keys::WAREHOUSE_PREFIX)?, name, region, version })
    }
}

/// The own item of a SKU, which contains only a version. Each change of the products of the SKU is conditional on this
/// version.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StoredSku {
    pub sku: Sku,
    pub version: u64,
}

/// The attributes of the own item of a SKU.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SkuItem {
    version: u64,
}

impl Entity<OrdersTable> for StoredSku {
    type Attributes = SkuItem;

    fn key(&self) -> Key {
        keys::key_of_own_item(keys::key_of_sku(&self.sku))
    }

    fn attributes(&self) -> SkuItem {
        SkuItem { version: self.version }
    }

    fn read(key: Key, read: SkuItem) -> Result<Self, TableError> {
        let SkuItem { version } = read;
        Ok(Self { sku: id_in_partition_key(&key, keys::SKU_PREFIX)?, version })
    }
}

/// The record of a delivery that an earlier version of Dueday added to the stock. Because of this record, a repeated request
/// does not add the delivery again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct EarlierDeliveryItem {
    /// The warehouse of the delivery; `None` in old records, which were written before this attribute existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warehouse: Option<WarehouseId>,
    /// The number of delivered pieces.
    pub stock: u64,
}

/// Returns the id of the product from the partition key of `item`, which relates the product to another entity.
pub(crate) fn product_id_in(item: &Item) -> Result<ProductId, TableError> {
    id_in_partition_key(&key_of_item(item), keys::PRODUCT_PREFIX)
}

/// Returns the item by which GSI-1 lists `warehouse` among all warehouses. The item contains all attributes of the
/// warehouse, so that the choice of a warehouse for an order reads only one partition.
pub(crate) fn warehouse_list_relation(warehouse: &Warehouse) -> Item {
    let mut item = warehouse.to_item();
    item.insert("SK".to_owned(), s(keys::ALL_WAREHOUSES));
    item.insert(DATA.to_owned(), s(keys::key_of_warehouse(&warehouse.id)));
    item
}
