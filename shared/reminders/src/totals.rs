//! The totals of a reminder run in addition to its row counts.

use std::ops::AddAssign;

use serde::Serialize;
use store::RunSums;
use sweep::RunTotals;

/// The totals of a reminder run, which are always zero. The report contains them, because the reports of both batches
/// have the same fields.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ReminderTotals {
    sums: RunSums,
    unreminded: u64,
}

impl RunTotals for ReminderTotals {}

impl AddAssign for ReminderTotals {
    fn add_assign(&mut self, _: Self) {}
}
