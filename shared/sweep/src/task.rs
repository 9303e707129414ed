//! What a sweep is used for: what it does with each due row, and what becomes of it.

use std::num::NonZeroU32;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use store::{Counts, Due, DuePage, Lane, Position, RunSums, Table, TableError};

/// What became of one row; `O` is the outcome it is counted under.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done<O> {
    /// It is done with.
    Counted(O),
    /// It could not be done with; the others go on.
    Failed { reason: String },
    /// It was not begun, because too little time was left.
    OutOfTime,
    /// It is another lane's, and is counted there.
    PassedBy,
    /// It is not to be begun or gone on with now. The run goes on to its end for the sake of the others, and says why it
    /// held back.
    HeldBack { counted: O, reason: String },
    /// The run must not go on. The row was not begun if there is no outcome.
    Stop { counted: Option<O>, reason: String },
}

impl<O> Done<O> {
    /// Whether the row is counted elsewhere, or by the next invocation.
    pub(super) fn is_uncounted(&self) -> bool {
        matches!(self, Done::OutOfTime | Done::Stop { counted: None, .. } | Done::PassedBy)
    }
}

/// What became of a row of the batch that `T` is of.
pub type DoneBy<T> = Done<<<T as Task>::Counts as Counts>::Outcome>;

/// What a sweep does with each due row.
#[async_trait]
pub trait Task: Send + Sync {
    /// How its rows are counted; it names the batch.
    type Counts: Counts;

    /// How long a row belongs to the worker that has claimed it.
    fn lease(&self) -> TimeDelta;

    /// The lanes of a walk, in their order.
    fn lanes(&self) -> &'static [Lane] {
        &[Lane::Due]
    }

    /// A page of the batch's index.
    async fn page(
        &self,
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError>;

    /// A run begins, one of `runs` that go on at the same time.
    fn begin(&self, _runs: NonZeroU32) {}

    /// What was settled since this was last asked for.
    fn take_sums(&self) -> RunSums {
        RunSums::default()
    }

    /// Why nothing must be done in `table`, if nothing must. Asked at the beginning of every run.
    async fn refuses_table(&self, _table: &Table) -> Result<Option<String>, TableError> {
        Ok(None)
    }

    /// Why the day must not be begun, if it must not, on `today`, the present day. Asked once, before the first row.
    async fn refuses(
        &self,
        _table: &Table,
        _shards: u32,
        _on: NaiveDate,
        _today: NaiveDate,
    ) -> Result<Option<String>, TableError> {
        Ok(None)
    }

    /// Something more of `shard` was worked on, on `today`: about a page, or what the walk has ended with.
    async fn page_done(&self, _table: &Table, _shard: u32, _today: NaiveDate) -> Result<(), TableError> {
        Ok(())
    }

    /// What a person must resolve before any day of `table` counts as done, if there is something.
    async fn unresolved(&self, _table: &Table) -> Result<Option<String>, TableError> {
        Ok(None)
    }

    /// How many payments this run has charged whose reminder had not been sent by then.
    fn unreminded(&self) -> u64 {
        0
    }

    /// Does what is due in `lane` for one row on `today`, the present day, by `deadline`.
    async fn work(&self, lane: Lane, due: &Due, today: NaiveDate, deadline: DateTime<Utc>) -> DoneBy<Self>
    where
        Self: Sized;
}
