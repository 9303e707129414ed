//! The items of products, SKUs, stock and warehouses.

pub mod products;
pub mod stock;
pub mod warehouses;
