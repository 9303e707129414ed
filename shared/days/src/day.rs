//! A day as a whole, and reading the run records by which it is judged.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use chrono_tz::Tz;
use serde::Serialize;
use strum::{Display, EnumIter};

use super::{AskedDay, DayRecords, ShardProof, Walked};
use store::{Batch, Paging, RunRecord, Table, TableError};

/// What is known of a day as a whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Display, EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "What the runs prove of a day: `done` if every shard is proved; `running` if so, and another run is walking one of them;\n\
            `not_done` if a shard is not proved; `expired` if records of the day have expired, and it cannot be judged any more."
    )
)]
pub enum DayState {
    /// Every shard is proved.
    Done,
    /// Every shard is proved, and another run is walking one of them.
    Running,
    /// Records have expired: the day cannot be judged any more.
    Expired,
    /// A shard is not proved.
    NotDone,
}

impl DayState {
    /// Whether the day is proved to be done.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Done | Self::Running)
    }

    /// The state of a day of which `proofs` are all shards. A day without shards is not done.
    pub fn of<'a>(proofs: impl IntoIterator<Item = &'a ShardProof>) -> Self {
        let of_shard = |proof: &ShardProof| match proof.walked {
            Walked::Expired => Self::Expired,
            _ if !proof.holds() => Self::NotDone,
            Walked::Running => Self::Running,
            _ => Self::Done,
        };
        proofs.into_iter().map(of_shard).max().unwrap_or(Self::NotDone)
    }
}

/// Reads the run records of days of one batch, and of the later days that may restore their proofs, each day once.
#[derive(Debug)]
pub struct DayReader<'a> {
    table: &'a Table,
    batch: Batch,
    /// The number of shards of the table.
    table_shards: u32,
    /// Only the records of this shard are read; those of all shards if absent.
    shard: Option<u32>,
    zone: Tz,
    now: DateTime<Utc>,
    read: BTreeMap<NaiveDate, Vec<RunRecord>>,
}

impl<'a> DayReader<'a> {
    /// Reads days of `batch` in `table`, which has so many shards by `now`. Days are those of `zone`.
    pub fn new(table: &'a Table, batch: Batch, table_shards: u32, zone: Tz, now: DateTime<Utc>) -> Self {
        Self { table, batch, table_shards, shard: None, zone, now, read: BTreeMap::new() }
    }

    /// Reads only the records of `shard`.
    pub fn of_shard(self, shard: u32) -> Self {
        Self { shard: Some(shard), ..self }
    }

    /// The records by which the day `on` is judged. A Query for the day, and one for each later day that is needed.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn read(&mut self, on: NaiveDate) -> Result<DayRecords, TableError> {
        let today = self.now.with_timezone(&self.zone).date_naive();
        let kept_days = u32::try_from(self.table.receipts_kept().num_days()).unwrap_or(u32::MAX);
        let asked = AskedDay { on, today, zone: self.zone, kept_days };
        let new = DayRecords::new(self.batch, on, self.table_shards, self.now);
        let mut day = DayRecords { may_have_expired: asked.may_have_expired(), ..new.with(self.records(on).await?) };
        let mut date = on;
        while date < today && !day.unfinished().is_empty() {
            date = date.checked_add_days(Days::new(1)).unwrap_or(today);
            day.later.extend(self.records(date).await?);
        }
        Ok(day)
    }

    async fn records(&mut self, on: NaiveDate) -> Result<Vec<RunRecord>, TableError> {
        if let Some(records) = self.read.get(&on) {
            return Ok(records.clone());
        }
        let records = match self.shard {
            Some(shard) => self.table.get_runs_of_shard(self.batch, on, shard).await?,
            None => self.table.get_runs_by_date(self.batch, on, &Paging::all()).await?.items,
        };
        self.read.insert(on, records.clone());
        Ok(records)
    }
}
