//! The items of orders, of their refunds and of fill tasks.

pub mod fill_tasks;
pub mod follow_ups;
pub mod order_lines;
pub mod orders;
pub mod refunds;
pub mod warehouse_orders;
