//! The commands for orders: lists, steps, follow-up orders and addresses.

pub mod address;
pub mod backfill;
pub mod fill_waiting_orders;
pub mod follow_ups;
pub mod list;
pub mod packing;
