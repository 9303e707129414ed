//! The stored results of audits and of comparisons with the gateway.

pub(crate) mod accepted_difference;
pub(crate) mod audit_record;
pub(crate) mod day_reconciliation;
