//! The routes of orders, and of the orders that a warehouse packs.

pub mod advance_orders;
pub mod follow_ups;
pub mod lines;
pub mod order_view;
pub mod orders;
pub mod packing;
pub mod packing_slips;
