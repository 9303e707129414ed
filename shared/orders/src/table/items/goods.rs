//! Products, stock and warehouses.

use serde::{Deserialize, Serialize};

use super::super::{OrdersTable, keys};
use super::{DATA, pk, sk};
use crate::{PlaceId, Product, ProductId, Stock, Warehouse, WarehouseId};
use billing::{Label, Sku};
use dynamo::{Entity, Instant, Item, Key, TableError, from_item, key_of, s};

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
        keys::own(keys::product(&self.id))
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
        Ok(Self { id: pk(&key, keys::PRODUCTS)?, name, total_stock, created_at: created_date.0, version })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(in crate::table) struct StockItem {
    pub stock: u64,
}

dynamo::attributes!(StockItem { STOCK = stock, });

pub(in crate::table) fn read_stock(item: &Item) -> Result<Stock, TableError> {
    let StockItem { stock } = from_item(item)?;
    let warehouse = sk(&key_of(item), keys::WAREHOUSES)?;
    Ok(Stock { product: pk(&key_of(item), keys::PRODUCTS)?, warehouse, quantity: stock })
}

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
        keys::own(keys::warehouse(&self.id))
    }

    fn attributes(&self) -> WarehouseItem {
        WarehouseItem { name: self.name.clone(), region: self.region.clone(), version: self.version }
    }

    fn read(key: Key, read: WarehouseItem) -> Result<Self, TableError> {
        let WarehouseItem { name, region, version } = read;
        Ok(Self { id: pk(&key, keys::WAREHOUSES)?, name, region, version })
    }
}

/// That a SKU is made of something: its version guards its lines.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::table) struct StoredSku {
    pub sku: Sku,
    pub version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SkuItem {
    version: u64,
}

impl Entity<OrdersTable> for StoredSku {
    type Attributes = SkuItem;

    fn key(&self) -> Key {
        keys::own(keys::sku(&self.sku))
    }

    fn attributes(&self) -> SkuItem {
        SkuItem { version: self.version }
    }

    fn read(key: Key, read: SkuItem) -> Result<Self, TableError> {
        let SkuItem { version } = read;
        Ok(Self { sku: pk(&key, keys::SKUS)?, version })
    }
}

/// That a delivery of a product was counted.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(in crate::table) struct ArrivalItem {
    /// Absent of those that were counted before it was noted.
    #[serde(default)]
    pub warehouse: Option<WarehouseId>,
    pub stock: u64,
}

/// The product that an edge leads from.
pub(in crate::table) fn product_of(item: &Item) -> Result<ProductId, TableError> {
    pk(&key_of(item), keys::PRODUCTS)
}

/// The edge by which all warehouses are listed: a copy of `warehouse`, so that choosing one reads one partition.
pub(in crate::table) fn listed(warehouse: &Warehouse) -> Item {
    let mut item = warehouse.to_item();
    item.insert("SK".to_owned(), s(keys::ALL_WAREHOUSES));
    item.insert(DATA.to_owned(), s(keys::warehouse(&warehouse.id)));
    item
}
