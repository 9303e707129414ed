//! Tests of the routes of orders.

mod follow_ups;
mod lifecycle;
mod order_address;
mod order_lines;
mod packing;
mod packing_slips;
