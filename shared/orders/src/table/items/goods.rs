//! Products, stock and warehouses.

use serde::{Deserialize, Serialize};

use super::super::{OrdersTable, keys};
use super::{id, pk, row};
use crate::{PlaceId, Product, ProductId, Stock, Warehouse, WarehouseId};
use billing::{Label, Sku};
use dynamo::{Instant, Item, Key, TableError, Versioned, from_item, key_of, s};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ProductItem {
    name: Label,
    total_stock: u64,
    created_date: Instant,
    version: u64,
}

impl Versioned<OrdersTable> for Product {
    fn key(&self) -> Key {
        keys::own(keys::product(&self.id))
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    fn to_item(&self) -> Item {
        let item = ProductItem {
            name: self.name.clone(),
            total_stock: self.total_stock,
            created_date: Instant(self.created_at),
            version: self.version,
        };
        row(self.key(), None, &item)
    }

    fn from_item(item: &Item) -> Result<Self, TableError> {
        let ProductItem { name, total_stock, created_date, version } = from_item(item)?;
        Ok(Self { id: pk(item, keys::PRODUCTS)?, name, total_stock, created_at: created_date.0, version })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(in crate::table) struct StockItem {
    pub stock: u64,
}

pub(in crate::table) fn read_stock(item: &Item) -> Result<Stock, TableError> {
    let StockItem { stock } = from_item(item)?;
    let warehouse = id(item, &key_of(item).sk, keys::WAREHOUSES)?;
    Ok(Stock { product: pk(item, keys::PRODUCTS)?, warehouse, quantity: stock })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WarehouseItem {
    name: Label,
    region: PlaceId,
    version: u64,
}

impl Versioned<OrdersTable> for Warehouse {
    fn key(&self) -> Key {
        keys::own(keys::warehouse(&self.id))
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    fn to_item(&self) -> Item {
        let item = WarehouseItem { name: self.name.clone(), region: self.region.clone(), version: self.version };
        row(self.key(), None, &item)
    }

    fn from_item(item: &Item) -> Result<Self, TableError> {
        let WarehouseItem { name, region, version } = from_item(item)?;
        Ok(Self { id: pk(item, keys::WAREHOUSES)?, name, region, version })
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
struct SkuItem {
    version: u64,
}

impl Versioned<OrdersTable> for StoredSku {
    fn key(&self) -> Key {
        keys::own(keys::sku(&self.sku))
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    fn to_item(&self) -> Item {
        row(self.key(), None, &SkuItem { version: self.version })
    }

    fn from_item(item: &Item) -> Result<Self, TableError> {
        let SkuItem { version } = from_item(item)?;
        Ok(Self { sku: pk(item, keys::SKUS)?, version })
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
    pk(item, keys::PRODUCTS)
}

/// The edge by which all warehouses are listed: a copy of `warehouse`, so that choosing one reads one partition.
pub(in crate::table) fn listed(warehouse: &Warehouse) -> Item {
    let mut item = warehouse.to_item();
    item.insert("SK".to_owned(), s(keys::ALL_WAREHOUSES));
    item.insert("Data".to_owned(), s(keys::warehouse(&warehouse.id)));
    item
}
