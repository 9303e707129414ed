//! The trait [`BatchTask`], which the payment batch and the reminder batch implement. The sweep, the loop over the rows of a
//! shard, calls it for each row.

use std::num::NonZeroU32;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::{Outcome, RowResult, RunReport};
use store::{DueEntry, DueIndexPosition, DuePage, Lane, Settings, Table, TableError};

/// The result of processing one row of the batch `T`.
pub type RowResultOf<T> = RowResult<<T as BatchTask>::Outcome>;

/// The counts of the rows of the batch `T` by outcome.
pub type CountsOf<T> = <<T as BatchTask>::Outcome as Outcome>::Counts;

/// The totals of the runs of the batch `T` in addition to the row counts.
pub type TotalsOf<T> = <<T as BatchTask>::Outcome as Outcome>::Totals;

/// The day that begins with a run or with a daily execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DayToStart {
    /// The date of the run: it processes the rows that are due on or before this date.
    pub on: NaiveDate,
    /// The current date in the billing time zone.
    pub today: NaiveDate,
}

/// The work of one of the two batches. State that must survive a run is in the task itself; the state of one run is in
/// [`BatchTask::Run`].
#[async_trait]
pub trait BatchTask: Send + Sync {
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
        after: Option<&DueIndexPosition>,
        limit: i32,
    ) -> Result<DuePage, TableError>;

    /// Processes the row `due` in `lane`, before `deadline`. `today` is the current date in the billing time zone,
    /// which may be later than the date of the run.
    async fn work_on_row(
        &self,
        run: &Self::Run,
        lane: Lane,
        due: &DueEntry,
        today: NaiveDate,
        deadline: DateTime<Utc>,
    ) -> RowResultOf<Self>
    where
        Self: Sized;

    /// Writes what the processed rows of `run` have not written themselves, such as their charges in the charge total of
    /// the day `today`. Returns the totals of these rows, and the result of the write. The totals contain only what was
    /// added since the last call.
    ///
    /// Called about once for each list page of `shard`, while rows are being processed, and at the end of the shard.
    /// After an error, the walk reads no further page, and the next call tries the write again. The last call is at the
    /// end of the run, with no shard, also if a walk has failed.
    async fn after_page(
        &self,
        _run: &Self::Run,
        _shard: Option<u32>,
        _today: NaiveDate,
    ) -> (TotalsOf<Self>, Result<(), TableError>)
    where
        Self: Sized,
    {
        (TotalsOf::<Self>::default(), Ok(()))
    }

    /// Returns the reason why no run may start for `table`, which has the settings `settings`; `None` if a run may
    /// start. Called at the beginning of every run and every daily execution. `day` is the day that then begins. It is
    /// `None` in a run that continues an earlier run or belongs to a daily execution, because the day has begun before.
    async fn reason_to_refuse_run(
        &self,
        _table: &Table,
        _settings: &Settings,
        _day: Option<DayToStart>,
    ) -> Result<Option<String>, TableError> {
        Ok(None)
    }

    /// Logs the report of a run that ended at `now`, in one line.
    fn log_report(report: &RunReport<Self::Outcome>, now: DateTime<Utc>);

    /// Returns a text about the problems of `table` that a person must resolve before a day can be done; `None` if
    /// there are no such problems.
    async fn unresolved_problem(&self, _table: &Table) -> Result<Option<String>, TableError> {
        Ok(None)
    }
}
