//! What the order desk does with stock and SKUs.

pub mod sku_products;
pub mod stock;
