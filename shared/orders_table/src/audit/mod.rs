//! The audit of the table.

pub mod audit_scan;
pub mod item_kinds;
pub mod orders_audit;
pub mod orders_scan;
pub mod partition_check;
pub mod revisions;
