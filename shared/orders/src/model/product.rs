//! Products, and how many of them lie where.

use chrono::{DateTime, Utc};

use super::{ProductId, WarehouseId};
use billing::Label;

/// A product that is kept in warehouses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    pub id: ProductId,
    pub name: Label,
    /// How many there are in all warehouses together: changed with each of them.
    pub total_stock: u64,
    pub created_at: DateTime<Utc>,
    pub version: u64,
}

/// How many of a product lie in a warehouse, not counting those that are taken for orders.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stock {
    pub product: ProductId,
    pub warehouse: WarehouseId,
    pub quantity: u64,
}
