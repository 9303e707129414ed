//! Compares the charges of a day with the ceilings before the day begins. The ceilings are the merchant's limits on the
//! charges of a day.

use billing::{CatchUp, ChargeTotal};
use store::{Batch, DueList, DueSubscription, Settings, Table, TableError};
use sweep::DayToStart;

/// The number of due payments that one request reads.
const DUE_PAYMENTS_PAGE_SIZE: usize = 1_000;

/// Returns the reason why `day` must not begin: the charges of the current day, together with all payments that are due
/// in `table`, exceed a ceiling in `settings`. Returns `None` if the day may begin. Reads the subscriptions of the due
/// payments only if the payment index contains more than a ceiling allows: some of these payments may not be charged,
/// for example because of a dispute. With [`CatchUp::Latest`], the subscriptions are always read, because the latest
/// month can have a higher price than the month in the index.
pub(super) async fn reason_to_refuse_day(
    table: &Table,
    settings: &Settings,
    day: DayToStart,
) -> Result<Option<String>, TableError> {
    let ceilings = &settings.payment_limits.ceilings;
    if ceilings.is_unlimited() {
        return Ok(None);
    }
    if table.policy().catch_up == CatchUp::Each {
        let indexed = total_of_day(table, settings, day, AmountSource::Index).await?;
        if ceilings.reason_exceeded(&indexed).is_none() {
            return Ok(None);
        }
    }
    Ok(ceilings.reason_exceeded(&total_of_day(table, settings, day, AmountSource::Subscriptions).await?))
}

/// Where the amounts of the due payments are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AmountSource {
    /// The payment index, which also contains payments that are not charged now.
    Index,
    Subscriptions,
}

/// Returns the total of the charges of the current day and of the payments that are due.
async fn total_of_day(
    table: &Table,
    settings: &Settings,
    DayToStart { on, today }: DayToStart,
    source: AmountSource,
) -> Result<ChargeTotal, TableError> {
    let (mut total, mut after) = (table.get_charge_total(today).await?, None);
    let policy = table.policy();
    loop {
        let DueList { rows, next } =
            table.get_due_by_date(Batch::Payments, settings.shards, on, after, DUE_PAYMENTS_PAGE_SIZE).await?;
        match source {
            AmountSource::Index => {
                let due = rows.iter().filter_map(|row| row.due.as_ref().ok()).filter(|due| due.may_be_charged());
                due.for_each(|due| total.add(due.amount));
            }
            AmountSource::Subscriptions => {
                // The run counts a subscription that cannot be read as failed, and does not charge it.
                let readable = table.get_subscriptions_of_due_rows(rows).await?.into_iter().flatten();
                let next = |row: DueSubscription| row.subscription.planned_payments(&policy, on).next();
                let due = readable.filter_map(next).filter(|payment| payment.payment_on <= on);
                due.for_each(|payment| total.add(payment.amount));
            }
        }
        after = next;
        if after.is_none() {
            return Ok(total);
        }
    }
}
