//! The check for unfinished runs: runs that were killed, stopped early or left rows unfinished, in shards that no later
//! run has processed to the end.

use chrono::{Days, NaiveDate};

use super::{BrokenInvariant, Invariant, InvariantChecker};
use days::{DayReader, ShardState};
use store::{Batch, Table, TableError};

/// The number of days whose runs are checked, including today.
const CHECKED_DAYS: usize = 31;

impl InvariantChecker {
    /// Checks the runs of both batches on the last 31 days, see [`unfinished_runs`].
    pub async fn check_runs(&self, table: &Table) -> Result<Vec<BrokenInvariant>, TableError> {
        let mut broken = Vec::new();
        for batch in Batch::ALL {
            let mut reader = DayReader::new(table, batch, self.shards, self.now);
            broken.extend(unfinished_runs(&mut reader, self.today).await?);
        }
        Ok(broken)
    }
}

/// Checks the last 31 days. Returns a violation for each shard that a run of such a day left unfinished, unless a later
/// run for the same or a later date processed the shard to its end. Sends one Query for each day.
pub async fn unfinished_runs(reader: &mut DayReader<'_>, today: NaiveDate) -> Result<Vec<BrokenInvariant>, TableError> {
    let mut broken = Vec::new();
    let days = std::iter::successors(Some(today), |day| day.checked_sub_days(Days::new(1)));
    for date in days.take(CHECKED_DAYS) {
        let day = reader.read(date).await?;
        for (shard, walked) in day.unfinished_shards() {
            let what = match walked {
                ShardState::Stopped => "a run stopped early or deferred rows",
                ShardState::LeftBehind => "a run left rows that failed, are in doubt or are leased by another worker",
                ShardState::Open => "a run was cut off",
                _ => "a run did not reach the end of the shard",
            };
            broken.push(BrokenInvariant {
                invariant: Invariant::RunsFinished,
                key: format!("{} of {date}, shard {shard}", day.batch),
                what: format!("{what}, and no later run has processed the whole shard"),
            });
        }
    }
    Ok(broken)
}
