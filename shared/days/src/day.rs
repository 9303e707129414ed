//! The state of a day over all shards, and the reader of the run records of a day.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Serialize;
use strum::{Display, EnumIter};

use super::{DayRecords, RequestedDay, ShardProof, ShardState};
use store::{Batch, RunRecord, StoredRuns, Table, TableError};

/// The state of a day of a batch, over all shards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Display, EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "The state of a day, computed from the run records. `done`: every shard is complete. `running`: \
            every shard is complete, and another run is processing one of them. `not_done`: a shard is not complete. \
            `expired`: run records of the day have expired, so its state cannot be determined any more."
    )
)]
pub enum DayState {
    /// Every shard is complete.
    Done,
    /// Every shard is complete, and another run is processing one of the shards again.
    Running,
    /// Run records of the day have expired, so its state cannot be determined any more.
    Expired,
    /// A shard is not complete.
    NotDone,
}

impl DayState {
    /// Returns whether every shard is complete. A day that is `Running` is complete too: another run is processing a
    /// shard that is already complete.
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Done | Self::Running)
    }

    /// Returns the state of a day. `proofs` are the states of all shards of the day. A day without shards is not done.
    pub fn from_proofs<'a>(proofs: impl IntoIterator<Item = &'a ShardProof>) -> Self {
        let state_of_shard = |proof: &ShardProof| match proof.walked {
            ShardState::Expired => Self::Expired,
            _ if !proof.is_complete() => Self::NotDone,
            ShardState::Running => Self::Running,
            _ => Self::Done,
        };
        proofs.into_iter().map(state_of_shard).max().unwrap_or(Self::NotDone)
    }
}

/// Returns the batches for which the run records do not prove that the day `on` is complete. `table_shards` is the number
/// of shards of the table now. Sends a Query request for each batch, and more if a day before today is not complete.
pub async fn incomplete_batches(
    table: &Table,
    table_shards: u32,
    on: NaiveDate,
    now: DateTime<Utc>,
) -> Result<Vec<Batch>, TableError> {
    let mut incomplete = Vec::new();
    for batch in Batch::ALL {
        let mut reader = DayReader::new(table, batch, table_shards, now);
        if !DayState::from_proofs(&reader.read(on).await?.prove_shards()).is_complete() {
            incomplete.push(batch);
        }
    }
    Ok(incomplete)
}

/// The time before midnight in UTC at which a day begins in the first time zone (Kiribati), and an hour more for clocks that
/// differ.
const EARLIEST_ZONE: TimeDelta = TimeDelta::hours(15);

/// The run records of a day, and the descriptions of those that cannot be used.
type CachedRuns = (Vec<RunRecord>, Vec<String>);

/// A reader of the run records of one batch, day by day. If the state of a day also depends on the runs of later days,
/// reads the records of these days too. The records of each day are read at most once.
#[derive(Debug)]
pub struct DayReader<'a> {
    table: &'a Table,
    batch: Batch,
    /// The number of shards of the table now.
    table_shards: u32,
    /// The only shard whose run records are read; `None` for all shards.
    shard: Option<u32>,
    /// The billing time zone.
    zone: Tz,
    now: DateTime<Utc>,
    /// The run records that were already read, by day.
    cache: BTreeMap<NaiveDate, CachedRuns>,
}

impl<'a> DayReader<'a> {
    /// Creates a reader of the run records of `batch` in `table`, which has `table_shards` shards now. All dates are
    /// dates in the time zone of the table's policy.
    pub fn new(table: &'a Table, batch: Batch, table_shards: u32, now: DateTime<Utc>) -> Self {
        let zone = table.policy().zone;
        Self { table, batch, table_shards, shard: None, zone, now, cache: BTreeMap::new() }
    }

    /// Restricts the reader to the run records of `shard`.
    pub fn limit_to_shard(self, shard: u32) -> Self {
        Self { shard: Some(shard), ..self }
    }

    /// Returns the run records that determine the state of the day `on`. Sends one Query request for the day, and one
    /// for each later day whose records are needed.
    pub async fn read(&mut self, on: NaiveDate) -> Result<DayRecords, TableError> {
        let today = self.now.with_timezone(&self.zone).date_naive();
        let kept_days = u32::try_from(self.table.receipt_retention().num_days()).unwrap_or(u32::MAX);
        let requested = RequestedDay { on, today, zone: self.zone, kept_days };
        let new = DayRecords::new(self.batch, on, self.table_shards, self.now);
        let (records, unreadable) = self.read_records(on).await?;
        let may_have_expired = requested.may_have_expired();
        let mut day = DayRecords { may_have_expired, unreadable, ..new.with_records(records) };
        let mut date = on;
        while date < today && self.needs_later_runs(&day) {
            date = date.checked_add_days(Days::new(1)).unwrap_or(today);
            day.later.extend(self.read_records(date).await?.0);
        }
        Ok(day)
    }

    /// Returns whether runs for later dates may complete a shard of `day`.
    fn needs_later_runs(&self, day: &DayRecords) -> bool {
        let is_open = |shard: &ShardProof| {
            let is_final = matches!(shard.walked, ShardState::Missing | ShardState::Rejected | ShardState::Expired);
            !shard.is_complete() && !is_final
        };
        match self.shard {
            Some(shard) => is_open(&day.prove_shard(shard)),
            None => day.prove_shards().iter().any(is_open),
        }
    }

    /// Returns all run records of the day `on`, from the cache or from the table.
    async fn read_records(&mut self, on: NaiveDate) -> Result<CachedRuns, TableError> {
        if let Some(runs) = self.cache.get(&on) {
            return Ok(runs.clone());
        }
        let StoredRuns { records, unreadable } = self.table.get_stored_runs(self.batch, on, self.shard).await?;
        let mut unreadable: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
        // A run never begins before its day, in any time zone. A record that says so belongs to another day, and counts as
        // a cut-off run, as an unreadable record does.
        let earliest = on.and_time(NaiveTime::MIN).and_utc() - EARLIEST_ZONE;
        let checked = records.into_iter().map(|run| match run.end {
            Some(_) if run.started_at < earliest => {
                unreadable.push(format!("the run record {} of {on} began before this day", run.id));
                RunRecord { deadline: Some(run.started_at), from: None, end: None, ..run }
            }
            _ => run,
        });
        let records = checked.collect();
        let runs = (records, unreadable);
        self.cache.insert(on, CachedRuns::clone(&runs));
        Ok(runs)
    }
}
