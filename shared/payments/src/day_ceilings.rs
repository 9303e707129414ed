//! Compares the charges of a day with the ceilings before the day begins. The ceilings are the merchant's limits on the
//! charges of a day.

use store::{Batch, DueList, Settings, Table, TableError};
use sweep::DayToStart;

/// The number of due payments that one request reads.
const DUE_PAYMENTS_PAGE_SIZE: usize = 1_000;

/// Returns the reason why `day` must not begin: the charges of the current day, together with all payments that are due
/// in `table`, exceed a ceiling in `settings`. Returns `None` if the day may begin.
pub(super) async fn reason_to_refuse_day(
    table: &Table,
    settings: &Settings,
    DayToStart { on, today }: DayToStart,
) -> Result<Option<String>, TableError> {
    let ceilings = &settings.payment_limits.ceilings;
    if ceilings.is_unlimited() {
        return Ok(None);
    }
    let (mut total, mut after) = (table.get_charge_total(today).await?, None);
    loop {
        let DueList { rows, next } =
            table.get_due_by_date(Batch::Payments, settings.shards, on, after, DUE_PAYMENTS_PAGE_SIZE).await?;
        let due = rows.iter().filter_map(|row| row.due.as_ref().ok()).filter(|due| due.will_be_charged());
        due.for_each(|due| total.add(due.amount));
        after = next;
        if after.is_none() {
            return Ok(ceilings.reason_exceeded(&total));
        }
    }
}
