//! Tests of the routes of the order desk: access rights, problem responses, lists and repeated requests.

mod access;
mod action_log;
mod erasure;
mod fulfilment;
mod goods;
mod lists;
mod people;
pub mod test_desk;
