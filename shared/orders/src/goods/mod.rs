//! Products, warehouses and the movements of the stock.

pub mod movement;
pub mod product;
pub mod warehouse;
pub mod warehouse_choice;
