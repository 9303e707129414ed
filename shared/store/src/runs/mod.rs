//! Runs of the batches, and everything that is counted: rows, charges of a day, refunds of a day, and requests of an hour.

pub(crate) mod counts;
pub(crate) mod day_total;
pub(crate) mod execution_lease;
pub(crate) mod hourly_limits;
pub(crate) mod run_records;
pub(crate) mod support_refunds;
