//! The trait [`Task`], which the payment batch and the reminder batch implement. The sweep, the loop over the rows of a
//! shard, calls it for each row.

use std::fmt::Debug;
use std::num::NonZeroU32;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::{Report, RunTotals};
use store::{Counts, Due, DuePage, Lane, Position, Settings, Table, TableError};

/// The outcome of a processed row. A run counts its rows by outcome. Each batch has its own outcomes. The conversion
/// into text returns the name of the outcome in log lines, such as `in_doubt`, which is also the name of its row count.
pub trait Outcome: Copy + PartialEq + Eq + Debug + Send + Sync + Into<&'static str> {
    /// The counts of the batch's rows by outcome.
    type Counts: Counts;

    /// Returns the counter for rows with this outcome in `counts`.
    fn count(self, counts: &mut Self::Counts) -> &mut u64;

    /// Returns whether a row with this outcome needs no attention. Its log line has the level DEBUG.
    fn is_expected(self) -> bool;

    /// Returns whether a row with this outcome was due and could be processed. A row that was not due any more, or that
    /// waits for a bank, a dispute or the customer, does not count for the age of the oldest due row.
    fn was_workable(self) -> bool;

    /// Logs the report of a run that ended at `now`, in one line.
    fn log(report: &Report<Self::Counts>, now: DateTime<Utc>);
}

/// The result of processing one row. `O` is the type of the batch's outcomes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowResult<O> {
    /// The row was processed with this outcome.
    Counted(O),
    /// The processing failed with an error of this type, whose name never changes. The run continues with the other
    /// rows.
    Failed { error_type: &'static str, reason: String },
    /// The row was not started, because too little time was left.
    OutOfTime,
    /// This lane (due rows, or open attempts) does not count the row, because the other lane counts it.
    LeftToOtherLane,
    /// The row must not be started or continued now, for the reason `reason`. This run counts the row with the outcome
    /// `counted`, continues with the other rows, and reports the reason. A later run processes the row.
    Deferred { counted: O, reason: String },
    /// The run must stop, for the reason `reason`. The row is counted with the outcome `counted`. If `counted` is
    /// `None`, the row was not started and is not counted.
    StopRun { counted: Option<O>, reason: String },
}

impl<O: Outcome> RowResult<O> {
    /// Returns whether the row is not counted now, because the other lane (due rows, or open attempts) or a later run
    /// counts it.
    pub(super) fn is_uncounted(&self) -> bool {
        matches!(self, RowResult::OutOfTime | RowResult::StopRun { counted: None, .. } | RowResult::LeftToOtherLane)
    }

    /// Returns whether the row counts for the age of the oldest due row.
    pub(super) fn was_workable(&self) -> bool {
        match self {
            RowResult::Counted(outcome) => outcome.was_workable(),
            RowResult::LeftToOtherLane => false,
            RowResult::Failed { .. }
            | RowResult::OutOfTime
            | RowResult::Deferred { .. }
            | RowResult::StopRun { .. } => true,
        }
    }
}

/// The result of processing one row of the batch `T`.
pub type RowResultOf<T> = RowResult<<T as Task>::Outcome>;

/// The counts of the rows of the batch `T` by outcome.
pub type CountsOf<T> = <<T as Task>::Outcome as Outcome>::Counts;

/// The work of one of the two batches. State that must survive a run is in the task itself; the state of one run is in
/// [`Task::Run`].
#[async_trait]
pub trait Task: Send + Sync {
    /// The outcomes of the batch's rows.
    type Outcome: Outcome;
    /// The state of one run, which all its rows share while they are processed concurrently.
    type Run: Send + Sync;

    /// Returns how long a worker leases a row that it has claimed.
    fn lease_duration(&self) -> TimeDelta;

    /// Returns the lanes of this batch, in the order in which a run processes them. A lane is one pass over the rows of
    /// a shard: for due rows, or for open payment attempts.
    fn lanes(&self) -> &'static [Lane] {
        &[Lane::Due]
    }

    /// Creates the state of a new run. `runs` is the number of concurrent runs, including this run.
    fn start_run(&self, runs: NonZeroU32) -> Self::Run;

    /// Reads at most `limit` rows of `shard` that are due on or before the date `on`, from the batch's index, after the
    /// position `after`; with `None`, from the start of the shard.
    async fn read_page(
        &self,
        run: &Self::Run,
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError>;

    /// Processes the row `due` in `lane`, before `deadline`. `today` is the current date in the billing time zone,
    /// which may be later than the date of the run.
    async fn work_on_row(
        &self,
        run: &Self::Run,
        lane: Lane,
        due: &Due,
        today: NaiveDate,
        deadline: DateTime<Utc>,
    ) -> RowResultOf<Self>
    where
        Self: Sized;

    /// Adds the charges of `run` that are not yet in the stored charge total of the day to the total of `today` and
    /// `shard`. Called about once for each list page of a shard, and at the end of the shard.
    async fn write_charge_total(&self, _run: &Self::Run, _shard: u32, _today: NaiveDate) -> Result<(), TableError> {
        Ok(())
    }

    /// Called after the walks of `run`, also if a walk has failed. Tries again to write the charges that
    /// [`Task::write_charge_total`] could not write.
    async fn write_remaining_charges(&self, _run: &Self::Run, _today: NaiveDate) {}

    /// Returns the totals of `run` since the last call, and resets them to zero.
    fn take_totals(&self, _run: &Self::Run) -> RunTotals {
        RunTotals::default()
    }

    /// Returns the reason why no run may start for `table`, which has the settings `settings`; `None` if a run may
    /// start. Called at the beginning of every run.
    async fn reason_to_refuse_table(&self, _table: &Table, _settings: &Settings) -> Result<Option<String>, TableError> {
        Ok(None)
    }

    /// Returns the reason why the processing of the day `on` must not begin; `None` if it may begin. `today` is the
    /// current date. Called when a daily execution begins, and at the start of a run that belongs to no daily execution
    /// and does not continue an earlier run.
    async fn reason_to_refuse_day(
        &self,
        _table: &Table,
        _settings: &Settings,
        _on: NaiveDate,
        _today: NaiveDate,
    ) -> Result<Option<String>, TableError> {
        Ok(None)
    }

    /// Returns a text about the problems of `table` that a person must resolve before a day can be done; `None` if
    /// there are no such problems.
    async fn unresolved_problem(&self, _table: &Table) -> Result<Option<String>, TableError> {
        Ok(None)
    }
}
