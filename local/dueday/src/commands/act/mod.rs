//! Commands that act for a customer.

pub mod account;
pub mod receipt;
pub mod receipt_args;
pub mod refund;
pub mod subscription;
