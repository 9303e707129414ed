//! Late payments: payments of earlier days that a run should have settled.

use chrono::{DateTime, NaiveDate, Utc};

use billing::{PaymentLimits, Subscription};
use store::{DueEntry, DueRow, Settings, Table, TableError};

/// The number of rows in each request to the payment index.
const ROWS_PER_PAGE: i32 = 100;

/// The largest number of rows of a shard whose subscriptions are read. If none of them is late, the next row counts as
/// late unread, because so many delayed payments need a person.
const MAX_ROWS_OF_SHARD: usize = 1_000;

/// Returns the payment date of the oldest payment before `today` that a run should have settled; `None` if there is
/// none. Sends a Query request for each shard, and one for each row of an earlier day.
pub async fn late_payments_since(
    table: &Table,
    settings: &Settings,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> Result<Option<NaiveDate>, TableError> {
    let Some(yesterday) = today.pred_opt() else { return Ok(None) };
    let limits = &settings.payment_limits;
    let mut oldest: Option<NaiveDate> = None;
    for shard in 0..settings.shards {
        let (mut after, mut rows_read) = (None, 0);
        'shard: loop {
            let page = table.get_due_payments_by_date(shard, yesterday, after.as_ref(), ROWS_PER_PAGE).await?;
            for row in &page.rows {
                rows_read += 1;
                if rows_read > MAX_ROWS_OF_SHARD || is_payment_late(table, row, limits, now).await? {
                    // An index entry with an unreadable date also counts, because the index returned the entry.
                    let date = row.position.on.parse().unwrap_or(yesterday);
                    oldest = Some(oldest.map_or(date, |oldest| oldest.min(date)));
                    break 'shard;
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(oldest)
}

/// Returns whether a run should have settled the payment of `row`, which is due on an earlier day. A row or a
/// subscription that cannot be read counts as late.
async fn is_payment_late(
    table: &Table,
    row: &DueRow,
    limits: &PaymentLimits,
    now: DateTime<Utc>,
) -> Result<bool, TableError> {
    let Ok(DueEntry { key, .. }) = &row.due else { return Ok(true) };
    match table.get_subscription(&key.account, key.subscription).await {
        Ok(stored) => Ok(stored.is_some_and(|subscription| is_settled_late(&subscription, limits, now))),
        Err(TableError::Unreadable { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Returns whether a run should have settled the payment of `subscription`, which is due on an earlier day. A bank may
/// process a payment for some days (`limits`). A dispute or an open finding stops the charges: the gateway reports the end
/// of the dispute, and the finding is a concern of its own.
fn is_settled_late(subscription: &Subscription, limits: &PaymentLimits, now: DateTime<Utc>) -> bool {
    match &subscription.attempt {
        Some(attempt) => limits.is_attempt_late(attempt, now),
        None => {
            subscription.status.is_chargeable()
                && !subscription.is_ending()
                && subscription.disputed_at.is_none()
                && subscription.open_findings == 0
        }
    }
}
