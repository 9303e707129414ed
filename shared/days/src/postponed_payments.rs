//! Postponed payments: due payments that no run finds, because a run with a clock that was ahead has planned them for an
//! impossibly late date.

use chrono::NaiveDate;
use store::{DueEntry, Table, TableError};

/// Returns the number of payments that are due by `today`, but that no run finds: a clock that was ahead has planned
/// them for an impossibly late date. Queries the few rows of the payment index after the next month.
pub async fn count_postponed_payments(table: &Table, shards: u32, today: NaiveDate) -> Result<u64, TableError> {
    let rows = table.get_postponed_payments(shards, today).await?;
    let charged = rows.iter().filter(|row| row.due.as_ref().map_or(true, DueEntry::may_be_charged));
    Ok(u64::try_from(charged.count()).unwrap_or(u64::MAX))
}

/// Describes `count` postponed payments, and what a person does about them.
pub fn describe_postponed_payments(count: u64) -> String {
    format!(
        "payments are due, but a clock that was ahead has planned them for a later date: {count}; repair them with \
         `dueday audit --fix`"
    )
}
