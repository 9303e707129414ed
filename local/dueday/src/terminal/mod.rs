//! What people see: tables, progress, failures.

pub mod failure;
pub mod output;
