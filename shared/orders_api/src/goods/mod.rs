//! The routes of products, SKUs, stock and warehouses.

pub mod products;
pub mod skus;
pub mod stock;
pub mod warehouses;
