//! Tests of the routes of the order desk: access rights, problem responses, lists and repeated requests.

mod access;
mod action_log;
mod address_fields;
mod company;
mod employees;
mod erasure;
mod follow_ups;
mod lifecycle;
mod lists;
mod order_address;
mod order_lines;
mod packing;
mod packing_slips;
mod stock;
pub mod test_desk;
