//! Rejected payments: payments whose charge the gateway has rejected, and that are not settled yet.

use billing::{Subscription, days_after};
use chrono::NaiveDate;
use store::{Due, Table, TableError};

use super::{ProvenDay, ShardState};

/// The number of rows in each request to the payment index.
const ROWS_PER_PAGE: i32 = 100;

/// The largest number of rows of a shard whose subscriptions are read.
const MAX_ROWS_OF_SHARD: usize = 1_000;

/// Returns the number of rejected payments that a run of `today` or tomorrow tries again, in the shards in which a run of
/// `days` has rejected a charge. Usually there is no such shard, and this function sends no request. Otherwise it sends a
/// Query request for each of these shards, and a GetItem request for each of its due rows.
pub async fn count_rejected_payments(table: &Table, days: &[ProvenDay], today: NaiveDate) -> Result<u64, TableError> {
    let rejected = days.iter().flat_map(|day| &day.shards).filter(|shard| shard.walked == ShardState::Rejected);
    let mut shards: Vec<u32> = rejected.map(|shard| shard.shard).collect();
    shards.sort_unstable();
    shards.dedup();
    let mut count = 0;
    for shard in shards {
        let (mut after, mut rows_read) = (None, 0);
        loop {
            let tomorrow = days_after(today, 1);
            let page = table.get_due_payments_by_date(shard, tomorrow, after.as_ref(), ROWS_PER_PAGE).await?;
            for row in &page.rows {
                let Ok(Due { key, .. }) = &row.due else { continue };
                let stored = table.get_subscription(&key.account, key.subscription).await?;
                count += u64::from(stored.is_some_and(|subscription| is_rejected(&subscription)));
            }
            rows_read += page.rows.len();
            after = page.next;
            if after.is_none() || rows_read >= MAX_ROWS_OF_SHARD {
                break;
            }
        }
    }
    Ok(count)
}

/// Returns whether the gateway has rejected the owed payment of `subscription`, and a run tries it again.
fn is_rejected(subscription: &Subscription) -> bool {
    subscription.rejections > 0 && subscription.status.is_chargeable() && !subscription.is_ending()
}
