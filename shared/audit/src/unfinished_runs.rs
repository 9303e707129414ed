//! Runs that were cut off, stopped or left rows, and that no complete walk has followed.

use chrono::{Days, NaiveDate};

use super::{Broken, Invariant};
use days::{DayReader, Walked};
use store::TableError;

/// Runs of so many days are judged: today, and those before.
const DAYS: usize = 31;

/// The shards that a run of the last 31 days has left without a complete walk after it, for its date or for a later one. A
/// Query for each day.
///
/// # Errors
/// [`TableError`].
pub async fn unfinished_runs(reader: &mut DayReader<'_>, today: NaiveDate) -> Result<Vec<Broken>, TableError> {
    let mut broken = Vec::new();
    let days = std::iter::successors(Some(today), |day| day.checked_sub_days(Days::new(1)));
    for date in days.take(DAYS) {
        let day = reader.read(date).await?;
        for (shard, walked) in day.unfinished() {
            let what = match walked {
                Walked::Stopped => "a run stopped or held back",
                Walked::LeftBehind => "a run left rows that failed, are in doubt or are under another worker's lease",
                Walked::Open => "a run was cut off",
                _ => "a run did not come to its end",
            };
            broken.push(Broken {
                invariant: Invariant::RunsFinished,
                key: format!("{} of {date}, shard {shard}", day.batch),
                what: format!("{what}, and no complete walk of the shard has followed"),
            });
        }
    }
    Ok(broken)
}
