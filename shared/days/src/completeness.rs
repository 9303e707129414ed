//! The completeness proof: it proves from the run records alone that a batch has processed all due rows of a day. All
//! code that reports a day as complete uses [`DayRecords`].
//!
//! A run walks (reads and processes in order) the due rows of one shard, which is one partition of the index. The
//! record of a run contains the positions in the shard at which the run began and ended. A shard is complete on three
//! conditions:
//! - A chain of runs leads from the start of the shard to its end: the first run of the chain began at the start, and
//!   each other run of the chain began where an earlier run of the chain had ended.
//! - No run of the chain stopped early or left rows unfinished.
//! - No run of the shard had a rejected row on this day (a row whose charge the gateway rejected).
//!
//! A run that was cut off (it was killed before its end was recorded) does not matter if runs that ended later walked
//! the rest of the shard. Runs for a later date also process what is due on this date. So if such runs have walked the
//! whole shard after the run that was cut off, the shard is complete on this date too. A shard without any run stays
//! missing, because a person must find out why no run began. A run that begins after the shard was complete can invalidate the proof: if this run stops
//! early, leaves rows unfinished or is cut off, the shard counts as complete only after other runs have walked the
//! shard to its end, for the same date or a later date.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;

use super::shard_walks::{ShardState, ShardWalks};
use store::{Batch, RunCounts, RunRecord, RunSums};

/// The maximum time from the time limit of a run until the end of the run is recorded. After its time limit, a run
/// still waits for its pending requests. In addition, the clocks of the machines may differ.
const MAX_TIME_TO_RECORD_END: TimeDelta = TimeDelta::minutes(5);
/// The assumed time limit of a run whose record contains no time limit, because an older version of Dueday wrote the
/// record.
const ASSUMED_TIME_LIMIT: TimeDelta = TimeDelta::hours(12);

/// The state of one shard on one day, computed from the run records.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShardProof {
    pub batch: Batch,
    pub shard: u32,
    /// The state of the shard, which says whether the runs have processed all due rows of the shard.
    pub walked: ShardState,
    /// The number of runs of the shard for that day.
    pub runs: u64,
    /// The number of rows that the runs of the shard processed, by outcome.
    pub counts: RunCounts,
    /// The total amounts of the attempts that the runs of the shard settled.
    pub sums: RunSums,
    /// Whether the row counts of every run add up: each row has exactly one outcome. A run whose counts do not add up no
    /// longer matters when later runs, whose counts add up, have walked the whole shard.
    pub adds_up: bool,
    /// The reason why a run stopped early or deferred rows (left them to a later run). If there are several such runs,
    /// the reason of the last run. `None` if there is no such run.
    pub stopped: Option<String>,
    /// Whether a run of the shard may still be running: it has no recorded end, and its time limit has not passed.
    #[serde(skip)]
    pub may_be_running: bool,
    /// Whether a run of the shard has no recorded end: it is running, or was killed.
    #[serde(skip)]
    pub has_run_without_end: bool,
}

impl ShardProof {
    /// Returns whether the records prove that the day is complete in this shard.
    pub fn is_complete(&self) -> bool {
        matches!(self.walked, ShardState::Complete | ShardState::Running) && self.adds_up
    }

    /// Returns whether a run of the shard was killed, and no other run continues.
    pub fn is_cut_off(&self) -> bool {
        self.walked == ShardState::Open && !self.may_be_running
    }

    /// Returns the number of rows that the runs left without a final outcome. A row is counted once for each run that
    /// has read the row.
    pub fn rows_without_final_outcome(&self) -> u64 {
        self.counts.rows_without_final_outcome()
    }
}

/// The run records of one day of a batch, from which the state of the day is computed.
///
/// ```
/// use days::{DayRecords, DayState, ShardState};
/// use store::Batch;
/// let (on, now) = ("2026-03-31".parse().unwrap(), "2026-03-31T06:00:00Z".parse().unwrap());
/// let proofs = DayRecords::new(Batch::Payments, on, 2, now).prove_shards();
/// assert!(proofs.iter().all(|shard| shard.walked == ShardState::Missing && !shard.is_complete()));
/// assert_eq!(DayState::from_proofs(&proofs), DayState::NotDone);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DayRecords {
    pub batch: Batch,
    pub on: NaiveDate,
    /// The current time, which shows whether a run without a recorded end may still be running or was cut off.
    pub now: DateTime<Utc>,
    /// The number of shards of the table now. It is used for days whose run records do not contain a number of shards.
    pub table_shards: u32,
    /// The records of all runs for this day.
    pub records: Vec<RunRecord>,
    /// The run records of later days. Runs that walk a whole shard for a later date also process the rows that the runs
    /// of an earlier day have left unfinished.
    pub later: Vec<RunRecord>,
    /// Whether run records of the day may have expired.
    pub may_have_expired: bool,
    /// The descriptions of the run records of the day that cannot be read. In `records`, they count as cut-off runs.
    pub unreadable: Vec<String>,
}

impl DayRecords {
    /// Creates an empty collection for the run records of `batch` for the day `on`. `table_shards` is the number of
    /// shards of the table now.
    pub fn new(batch: Batch, on: NaiveDate, table_shards: u32, now: DateTime<Utc>) -> Self {
        Self {
            batch,
            on,
            now,
            table_shards,
            records: Vec::new(),
            later: Vec::new(),
            may_have_expired: false,
            unreadable: Vec::new(),
        }
    }

    /// Returns the collection with `records` as the run records of the day.
    pub fn with_records(self, records: Vec<RunRecord>) -> Self {
        Self { records, ..self }
    }

    /// Returns the collection without the runs of later days, so that it shows what the runs of the day itself did.
    pub fn without_later_runs(self) -> Self {
        Self { later: Vec::new(), ..self }
    }

    /// Returns the numbers of the shards of the day: the shards that existed when the first run of the day began, and
    /// additional shards that runs of the day have walked.
    fn shards(&self) -> Vec<u32> {
        let first = self.records.iter().min_by_key(|record| (record.started_at, record.id));
        let count = first.and_then(|record| record.shards).unwrap_or(self.table_shards);
        let mut added: Vec<u32> =
            self.records.iter().map(|record| record.shard).filter(|shard| *shard >= count).collect();
        added.sort_unstable();
        added.dedup();
        (0..count).chain(added).collect()
    }

    /// Returns the state of every shard of the day.
    pub fn prove_shards(&self) -> Vec<ShardProof> {
        self.shards().into_iter().map(|shard| self.prove_shard(shard)).collect()
    }

    /// Returns the state of `shard` on the day.
    pub fn prove_shard(&self, shard: u32) -> ShardProof {
        let walks = self.walks_of_shard(&self.records, shard);
        let ends = || walks.records.iter().filter_map(|record| record.end.as_ref());
        let counts = ends().fold(RunCounts::none(self.batch), |sum, end| sum.combined_with(end.counts));
        let mut sums = RunSums::default();
        ends().for_each(|end| sums.add(&end.sums));
        let mut by_time: Vec<&&RunRecord> = walks.records.iter().collect();
        by_time.sort_by_key(|record| record.id);
        let stopped = by_time.into_iter().rev().find_map(|record| record.end.as_ref()?.stopped.clone());
        ShardProof {
            batch: self.batch,
            shard,
            walked: self.shard_state(shard, &walks),
            runs: u64::try_from(walks.records.len()).unwrap_or(u64::MAX),
            counts,
            sums,
            adds_up: self.adds_up(shard, &walks),
            stopped,
            may_be_running: walks.records.iter().any(|run| self.may_be_running(run)),
            has_run_without_end: walks.records.iter().any(|run| run.end.is_none()),
        }
    }

    /// Returns the unfinished shards, each with its state. A shard is unfinished if a run of the shard was cut off,
    /// stopped early or left rows unfinished, and no later runs have walked the shard to its end. While a run of the shard
    /// may be running, the shard is not unfinished yet.
    pub fn unfinished_shards(&self) -> Vec<(u32, ShardState)> {
        let unfinished_state = |shard| {
            let walks = self.walks_of_shard(&self.records, shard);
            let invalidating = self.invalidating_runs(shard, &walks);
            let is_running = walks.records.iter().any(|run| self.may_be_running(run));
            (!invalidating.is_empty() && !is_running).then(|| (shard, walks.incomplete_state(&invalidating)))
        };
        self.shards().into_iter().filter_map(unfinished_state).collect()
    }

    /// Returns the state of `shard`. `walks` are the runs of the shard for the day.
    fn shard_state(&self, shard: u32, walks: &ShardWalks<'_>) -> ShardState {
        if walks.ends().any(|end| end.counts.rejected() > 0) {
            return ShardState::Rejected;
        }
        let is_walked = walks.is_complete() || self.is_walked_for_later_date(shard, None);
        let walked = match is_walked {
            _ if walks.records.is_empty() => ShardState::Missing,
            false => walks.incomplete_state(&walks.records),
            true => match self.invalidating_runs(shard, walks) {
                runs if !runs.is_empty() => walks.incomplete_state(&runs),
                _ if walks.unfinished_runs().into_iter().any(|run| self.may_be_running(run)) => ShardState::Running,
                _ => ShardState::Complete,
            },
        };
        if self.may_have_expired && walked != ShardState::Complete && walked != ShardState::Running {
            return ShardState::Expired;
        }
        walked
    }

    /// Returns whether the counts of every run in `walks`, the runs of `shard` for the day, add up, or later runs have
    /// walked the whole shard again.
    fn adds_up(&self, shard: u32, walks: &ShardWalks<'_>) -> bool {
        let (adding_up, others): (Vec<_>, Vec<_>) = walks.records.iter().partition(|run| do_counts_add_up(run));
        let adding_up = ShardWalks { records: adding_up };
        let is_walked_again = |run: &RunRecord| {
            adding_up.clean_runs_reach_end(None, Some(run)) || self.is_walked_for_later_date(shard, Some(run))
        };
        others.into_iter().all(is_walked_again)
    }

    /// Returns the runs because of which `shard` is not proven to be complete. Such a run is unfinished and cannot be
    /// running any more, and after its start, no runs for this date or a later date have walked the shard to its end.
    fn invalidating_runs<'a>(&self, shard: u32, walks: &ShardWalks<'a>) -> Vec<&'a RunRecord> {
        let is_walked_later = |run: &RunRecord| self.is_walked_for_later_date(shard, Some(run));
        let unfinished = walks.unfinished_runs().into_iter();
        unfinished.filter(|run| !self.may_be_running(run) && !is_walked_later(run)).collect()
    }

    /// Returns whether the runs for one later date have walked `shard` from its start to its end, only counting runs
    /// after the start of the run `after`, if it is given.
    fn is_walked_for_later_date(&self, shard: u32, after: Option<&RunRecord>) -> bool {
        let mut dates: Vec<NaiveDate> = self.later.iter().map(|later| later.on).collect();
        dates.dedup();
        dates.into_iter().any(|date| {
            let of_date = self.later.iter().filter(|later| later.on == date && later.shard == shard);
            let of_date = of_date.filter(|later| do_counts_add_up(later));
            ShardWalks { records: of_date.collect() }.clean_runs_reach_end(None, after)
        })
    }

    /// Returns whether `run` may still be running: it has no end, and its time limit has not passed.
    fn may_be_running(&self, run: &RunRecord) -> bool {
        let limit = run.deadline.unwrap_or(run.started_at + ASSUMED_TIME_LIMIT);
        run.end.is_none() && self.now <= limit + MAX_TIME_TO_RECORD_END
    }

    /// Selects from `records` the runs of `shard`.
    fn walks_of_shard<'a>(&self, records: &'a [RunRecord], shard: u32) -> ShardWalks<'a> {
        ShardWalks { records: records.iter().filter(|record| record.shard == shard).collect() }
    }
}

/// Returns whether the row counts of `run` add up. A run without a recorded end has no counts.
fn do_counts_add_up(run: &RunRecord) -> bool {
    run.end.as_ref().is_none_or(|end| end.counts.adds_up())
}
