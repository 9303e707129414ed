//! The commands for products, SKUs, warehouses and stock.

pub mod deliveries;
pub mod import;
pub mod stock;
