//! The rows of a page: several accounts at a time, the rows of one account one after the other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use futures::{StreamExt as _, stream};

use super::{Done, DoneBy, Sweep, Task};
use crate::billing::AccountId;
use crate::table::{Due, Lane, Row};

/// The rows of one account, each with its place in the page.
type Chain = Vec<(usize, Due)>;

/// A row's place in its page, its key, and what became of it.
type Worked<T> = (usize, String, DoneBy<T>);

impl<T: Task> Sweep<T> {
    /// Works on `rows`. What becomes of them comes in no order.
    pub(super) async fn work(&self, lane: Lane, rows: Vec<Row>, deadline: DateTime<Utc>) -> Vec<Worked<T>> {
        let (chains, mut done) = chains::<T>(lane, rows);
        let is_stopped = AtomicBool::new(false);
        let worked = stream::iter(chains)
            .map(|chain| self.work_on_account(lane, chain, deadline, &is_stopped))
            .buffer_unordered(self.limits.concurrency.max(1))
            .collect::<Vec<_>>()
            .await;
        done.extend(worked.into_iter().flatten());
        done
    }

    async fn work_on_account(
        &self,
        lane: Lane,
        chain: Chain,
        deadline: DateTime<Utc>,
        is_stopped: &AtomicBool,
    ) -> Vec<Worked<T>> {
        let mut worked = Vec::with_capacity(chain.len());
        for (place, due) in chain {
            let is_late = is_stopped.load(Ordering::Relaxed) || self.clock.now() >= deadline;
            let done = if is_late { Done::OutOfTime } else { self.task.work(lane, &due, self.today(), deadline).await };
            if matches!(done, Done::Stop { .. }) {
                is_stopped.store(true, Ordering::Relaxed);
            }
            worked.push((place, due.key.key().to_string(), done));
        }
        worked
    }
}

/// The rows by account, in the order in which the accounts come; and those that cannot be read.
fn chains<T: Task>(lane: Lane, rows: Vec<Row>) -> (Vec<Chain>, Vec<Worked<T>>) {
    let (mut chains, mut unreadable) = (Vec::<Chain>::new(), Vec::new());
    let mut by_account: HashMap<AccountId, usize> = HashMap::new();
    for (place, row) in rows.into_iter().enumerate() {
        match row.due {
            Ok(due) => {
                let chain = *by_account.entry(due.key.account.clone()).or_insert(chains.len());
                if chain == chains.len() {
                    chains.push(Vec::new());
                }
                chains[chain].push((place, due));
            }
            Err(error) => {
                let key = format!("{} {}", row.position.pk, row.position.sk);
                // It is reported once, in the first lane.
                let failed = Done::Failed { reason: error.to_string() };
                unreadable.push((place, key, if lane == Lane::Due { failed } else { Done::PassedBy }));
            }
        }
    }
    (chains, unreadable)
}
