//! Tests of the routes of products, SKUs, stock and warehouses.

mod products;
mod stock;
