//! Products, and their stock in the warehouses.

use chrono::{DateTime, Utc};

use crate::ids::{ProductId, WarehouseId};
use billing::Label;

/// A product that is kept in warehouses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    pub id: ProductId,
    pub name: Label,
    /// The number of pieces in all warehouses together. Each transaction that changes the stock of a warehouse also
    /// changes this sum.
    pub total_stock: u64,
    pub created_at: DateTime<Utc>,
    pub version: u64,
}

/// The stock of a product in a warehouse. It does not include the pieces that are reserved for orders.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stock {
    pub product: ProductId,
    pub warehouse: WarehouseId,
    /// The number of pieces.
    pub quantity: u64,
}
