//! Rejected payments: payments whose charge the gateway has rejected, and that are not settled yet.

use std::collections::BTreeMap;

use billing::{Subscription, days_after, is_rejection_without_cause};
use chrono::NaiveDate;
use store::{DueEntry, Table, TableError};

use super::{ProvenDay, ShardState};

/// The number of rows in each request to the payment index.
const ROWS_PER_PAGE: i32 = 100;

/// The largest number of rows of a shard whose subscriptions are read. If the shard has more rows, the count of the runs is
/// used, because a rejected payment may be among the rows that were not read.
const MAX_ROWS_OF_SHARD: usize = 1_000;

/// Returns the number of rejected payments whose cause a person must find, in the shards in which a run of `days` has
/// rejected a charge. A run of `today` or tomorrow tries them again. Usually there is no such shard, and this function sends
/// no request. Otherwise it sends a Query request for each of these shards, and one or two GetItem requests for each of its
/// due rows.
pub async fn count_rejected_payments(table: &Table, days: &[ProvenDay], today: NaiveDate) -> Result<u64, TableError> {
    let rejected = days.iter().flat_map(|day| &day.shards).filter(|shard| shard.walked == ShardState::Rejected);
    let mut shards: BTreeMap<u32, u64> = BTreeMap::new();
    for shard in rejected {
        let counted = shards.entry(shard.shard).or_default();
        *counted = (*counted).max(shard.counts.rejected());
    }
    let mut total = 0;
    for (shard, counted_by_runs) in shards {
        let mut after = None;
        let mut rows_read = 0;
        let mut count = 0;
        loop {
            let tomorrow = days_after(today, 1);
            let page = table.get_due_payments_by_date(shard, tomorrow, after.as_ref(), ROWS_PER_PAGE).await?;
            for row in &page.rows {
                let Ok(DueEntry { key, .. }) = &row.due else { continue };
                // An unreadable subscription counts as a late payment on the next day.
                match table.get_subscription(&key.account, key.subscription).await {
                    Ok(Some(subscription)) => {
                        count += u64::from(needs_person_for_rejection(table, &subscription).await?)
                    }
                    Ok(None) | Err(TableError::Unreadable { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            rows_read += page.rows.len();
            after = page.next;
            if after.is_none() {
                break;
            }
            if rows_read >= MAX_ROWS_OF_SHARD {
                count = count.max(counted_by_runs);
                break;
            }
        }
        total += count;
    }
    Ok(total)
}

/// Returns whether the gateway has rejected the owed payment of `subscription`, and a person must find the cause before a run
/// tries it again.
async fn needs_person_for_rejection(table: &Table, subscription: &Subscription) -> Result<bool, TableError> {
    let Subscription { account, id, due_on, attempt_seq, rejections, status, .. } = subscription;
    if *rejections == 0 || !status.is_chargeable() || subscription.is_ending() {
        return Ok(false);
    }
    let latest = match table.get_attempt_record(account, *id, *due_on, *attempt_seq).await {
        Err(TableError::Unreadable { .. }) => None,
        read => read?,
    };
    Ok(*rejections > 1 || latest.is_none_or(|latest| !is_rejection_without_cause(&latest.code)))
}
