//! The rules and the sums with which an audit compares the stored values.

pub mod contradictions;
pub mod ledger;
pub mod order_digest;
