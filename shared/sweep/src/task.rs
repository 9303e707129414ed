//! What a batch provides to its sweep: the rows that are due, and the work on one row.

use std::fmt::Debug;
use std::num::NonZeroU32;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::Report;
use store::{Counts, Due, DuePage, Lane, Position, RunSums, Table, TableError};

/// The outcome of a row that was worked on. Each batch has its own.
pub trait Outcome: Copy + PartialEq + Eq + Debug + Send + Sync {
    /// The counts of the batch's rows.
    type Counts: Counts;

    /// Returns the count of the rows with this outcome.
    fn count(self, counts: &mut Self::Counts) -> &mut u64;

    /// Logs `report` of a run that has ended, in one line.
    fn log(report: &Report<Self::Counts>);
}

/// The result of the work on one row; `O` is the outcome that it is counted under.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done<O> {
    /// The row was worked on.
    Counted(O),
    /// The work failed; the other rows go on.
    Failed { reason: String },
    /// The row was not begun, because too little time was left.
    OutOfTime,
    /// Another lane works on the row, and counts it.
    PassedBy,
    /// The row must not be begun or gone on with now. The run goes on to its end because of the other rows, and reports
    /// the reason.
    HeldBack { counted: O, reason: String },
    /// The run must not go on. The row was not begun if there is no outcome.
    Stop { counted: Option<O>, reason: String },
}

impl<O> Done<O> {
    /// Whether the row is counted by another lane or the next invocation.
    pub(super) fn is_uncounted(&self) -> bool {
        matches!(self, Done::OutOfTime | Done::Stop { counted: None, .. } | Done::PassedBy)
    }
}

/// The result of the work of the batch `T` on one row.
pub type DoneBy<T> = Done<<T as Task>::Outcome>;

/// The counts of the rows of the batch `T`.
pub type CountsOf<T> = <<T as Task>::Outcome as Outcome>::Counts;

/// What the rows of a run come to, besides their counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    pub sums: RunSums,
    /// Payments that were charged before their reminder was sent.
    pub unreminded: u64,
}

/// A batch, as its sweep uses it. What must survive a run is in the task, the state of one run in [`Task::Run`].
#[async_trait]
pub trait Task: Send + Sync {
    type Outcome: Outcome;
    /// The state of one run, which all work on its rows shares.
    type Run: Send + Sync;

    /// How long a row belongs to the worker that has claimed it.
    fn lease(&self) -> TimeDelta;

    /// The lanes of a walk, in their order.
    fn lanes(&self) -> &'static [Lane] {
        &[Lane::Due]
    }

    /// Begins a run, one of `runs` at the same time.
    fn begin(&self, runs: NonZeroU32) -> Self::Run;

    /// Returns the next rows of the batch's index, after the position `after`.
    async fn page(
        &self,
        run: &Self::Run,
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError>;

    /// Does the work of `lane` on one row on `today`, the present day, by `deadline`.
    async fn work(
        &self,
        run: &Self::Run,
        lane: Lane,
        due: &Due,
        today: NaiveDate,
        deadline: DateTime<Utc>,
    ) -> DoneBy<Self>
    where
        Self: Sized;

    /// Saves what the rows of `shard` that were worked on since the last call come to, on `today`. Called about once a
    /// page, and at the end of a walk.
    async fn page_done(&self, _shard: u32, _today: NaiveDate) -> Result<(), TableError> {
        Ok(())
    }

    /// Returns the totals of `run` since the last call.
    fn take_totals(&self, _run: &Self::Run) -> Totals {
        Totals::default()
    }

    /// Returns why nothing may be done in `table`, if that is so. Called at the beginning of every run.
    async fn refuses_table(&self, _table: &Table) -> Result<Option<String>, TableError> {
        Ok(None)
    }

    /// Returns why the day must not be begun on `today`, the present day, if that is so. Called once, before the first row.
    async fn refuses(
        &self,
        _table: &Table,
        _shards: u32,
        _on: NaiveDate,
        _today: NaiveDate,
    ) -> Result<Option<String>, TableError> {
        Ok(None)
    }

    /// Returns what a person must resolve before any day of `table` is done, if there is something.
    async fn unresolved(&self, _table: &Table) -> Result<Option<String>, TableError> {
        Ok(None)
    }
}
