//! The completeness proof: whether a batch's day was done, by its run records alone. Whatever says that a day is done says it
//! by [`DayRecords`].
//!
//! Every run writes where it began, and where it ended. A shard is proved when runs chain from its start to its end, none of
//! them stopped or leaving rows behind, and no run of the day rejected a row. A run that was cut short does not matter if later
//! runs walked the rest of the shard after it began. A run that began after the proof and ended incomplete, or was cut off,
//! spoils the proof until the shard was walked once more, for that date or for a later one.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;

use super::shard_walks::{ShardWalks, Walked};
use store::{Batch, RunCounts, RunRecord, RunSums};

/// A run may close its record this long after its time limit: it awaits what it has begun, and clocks differ.
const TIME_TO_CLOSE: TimeDelta = TimeDelta::minutes(5);
/// The time limit of a run whose record, of an older version, names none.
const LONGEST_RUN: TimeDelta = TimeDelta::hours(12);

/// One shard's day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShardProof {
    pub batch: Batch,
    pub shard: u32,
    pub walked: Walked,
    /// The runs there were.
    pub runs: u64,
    /// What became of the rows all of them saw.
    pub counts: RunCounts,
    /// What the attempts that they settled come to.
    pub sums: RunSums,
    /// Whether every run accounts for all it saw.
    pub adds_up: bool,
    /// Why the last run that stopped did so.
    pub stopped: Option<String>,
}

impl ShardProof {
    /// Whether the day is proved to be done.
    pub fn holds(&self) -> bool {
        matches!(self.walked, Walked::Complete | Walked::Running) && self.adds_up
    }

    /// The payments that were left in doubt or at the bank, or that failed, each time a run saw them.
    pub fn unsettled(&self) -> u64 {
        self.counts.unsettled()
    }
}

/// The run records by which a batch's day is judged.
///
/// ```
/// use days::{DayRecords, DayState, Walked};
/// use store::Batch;
/// let (on, now) = ("2026-03-31".parse().unwrap(), "2026-03-31T06:00:00Z".parse().unwrap());
/// let proofs = DayRecords::new(Batch::Payments, on, 2, now).prove();
/// assert!(proofs.iter().all(|shard| shard.walked == Walked::Missing && !shard.holds()));
/// assert_eq!(DayState::of(&proofs), DayState::NotDone);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DayRecords {
    pub batch: Batch,
    pub on: NaiveDate,
    /// The present instant: a run that is past its time limit by then was cut off.
    pub now: DateTime<Utc>,
    /// The number of shards of the table: that of a day whose records name none.
    pub table_shards: u32,
    /// The records of the day.
    pub records: Vec<RunRecord>,
    /// The records of later days: a complete walk for a later date finds what an earlier day has left.
    pub later: Vec<RunRecord>,
    /// Whether records of the day may have expired.
    pub may_have_expired: bool,
}

impl DayRecords {
    /// No records of the day `on` of `batch`, in a table of so many shards.
    pub fn new(batch: Batch, on: NaiveDate, table_shards: u32, now: DateTime<Utc>) -> Self {
        Self { batch, on, now, table_shards, records: Vec::new(), later: Vec::new(), may_have_expired: false }
    }

    /// The same day with these records.
    pub fn with(self, records: Vec<RunRecord>) -> Self {
        Self { records, ..self }
    }

    /// The shards that the day had: those that there were when its first run began, and whatever a later run has walked.
    fn shards(&self) -> Vec<u32> {
        let first = self.records.iter().min_by_key(|record| (record.started_at, record.id));
        let count = first.and_then(|record| record.shards).unwrap_or(self.table_shards);
        let mut added: Vec<u32> =
            self.records.iter().map(|record| record.shard).filter(|shard| *shard >= count).collect();
        added.sort_unstable();
        added.dedup();
        (0..count).chain(added).collect()
    }

    /// What the records prove of each of the day's shards.
    pub fn prove(&self) -> Vec<ShardProof> {
        self.shards().into_iter().map(|shard| self.prove_shard(shard)).collect()
    }

    /// What the records prove of `shard`.
    pub fn prove_shard(&self, shard: u32) -> ShardProof {
        let of_shard = self.of_shard(&self.records, shard);
        let ends = || of_shard.records.iter().filter_map(|record| record.end.as_ref());
        let counts = ends().fold(RunCounts::none(self.batch), |sum, end| sum.plus(end.counts));
        let mut sums = RunSums::default();
        ends().for_each(|end| sums.add(&end.sums));
        let mut last: Vec<&&RunRecord> = of_shard.records.iter().collect();
        last.sort_by_key(|record| record.id);
        let stopped = last.into_iter().rev().find_map(|record| record.end.as_ref()?.stopped.clone());
        ShardProof {
            batch: self.batch,
            shard,
            walked: self.walked(shard, &of_shard),
            runs: u64::try_from(of_shard.records.len()).unwrap_or(u64::MAX),
            counts,
            sums,
            adds_up: ends().all(|end| end.counts.adds_up()),
            stopped,
        }
    }

    /// The shards of which a run was cut off, stopped or left rows behind without a complete walk after it, and which of
    /// these it was.
    pub fn unfinished(&self) -> Vec<(u32, Walked)> {
        let of_shard = |shard| {
            let walks = self.of_shard(&self.records, shard);
            let spoilers = self.spoilers(shard, &walks);
            (!spoilers.is_empty()).then(|| (shard, walks.incomplete(&spoilers)))
        };
        self.shards().into_iter().filter_map(of_shard).collect()
    }

    fn walked(&self, shard: u32, walks: &ShardWalks<'_>) -> Walked {
        if walks.ends().any(|end| end.counts.rejected() > 0) {
            return Walked::Rejected;
        }
        let walked = match walks.records.is_empty() {
            true => Walked::Missing,
            false if !walks.is_complete() => walks.incomplete(&walks.records),
            false => match self.spoilers(shard, walks) {
                spoilers if !spoilers.is_empty() => walks.incomplete(&spoilers),
                _ if walks.unfinished().into_iter().any(|run| self.goes_on(run)) => Walked::Running,
                _ => Walked::Complete,
            },
        };
        if self.may_have_expired && walked != Walked::Complete && walked != Walked::Running {
            return Walked::Expired;
        }
        walked
    }

    /// The runs that spoil the proof of `shard`: they were not walked to their end, do not go on, and no walk for a later
    /// date came after them.
    fn spoilers<'a>(&self, shard: u32, walks: &ShardWalks<'a>) -> Vec<&'a RunRecord> {
        let is_restored = |run: &RunRecord| {
            let mut dates: Vec<NaiveDate> = self.later.iter().map(|later| later.on).collect();
            dates.dedup();
            dates.into_iter().any(|date| {
                let of_date = self.later.iter().filter(|later| later.on == date && later.shard == shard);
                ShardWalks { records: of_date.collect() }.leads_to_the_end(None, Some(run))
            })
        };
        let unfinished = walks.unfinished().into_iter();
        unfinished.filter(|run| !self.goes_on(run) && !is_restored(run)).collect()
    }

    /// Whether `run` has not ended and may still do so.
    fn goes_on(&self, run: &RunRecord) -> bool {
        let limit = run.deadline.unwrap_or(run.started_at + LONGEST_RUN);
        run.end.is_none() && self.now <= limit + TIME_TO_CLOSE
    }

    fn of_shard<'a>(&self, records: &'a [RunRecord], shard: u32) -> ShardWalks<'a> {
        ShardWalks { records: records.iter().filter(|record| record.shard == shard).collect() }
    }
}
