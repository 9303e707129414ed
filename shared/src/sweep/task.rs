//! What a sweep is used for: what it does with each due row, and what becomes of it.

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};

use crate::table::{Batch, Due, DuePage, Position, Table, TableError};

/// What became of one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// It is done with, under this name in the counts.
    As(&'static str),
    /// It could not be done with; the others go on.
    Failed { reason: String },
    /// It was not begun, because too little time was left.
    OutOfTime,
    /// It is not to be begun or gone on with now, and is counted as named. The run goes on to its end for the sake of
    /// the others, and says why it held back.
    Held { counted: &'static str, reason: String },
    /// The run must not go on. The row is counted as named, or was not begun.
    Stop { counted: Option<&'static str>, reason: String },
}

impl Done {
    /// Whether the row is left as it was, for the next invocation.
    pub(super) fn is_unbegun(&self) -> bool {
        matches!(self, Done::OutOfTime | Done::Stop { counted: None, .. })
    }
}

/// What a sweep does with each due row.
#[async_trait]
pub trait Task: Send + Sync {
    /// The batch it belongs to.
    const BATCH: Batch;
    /// The names a row may be counted under, besides `due` and `failed`.
    const OUTCOMES: &'static [&'static str];

    /// A page of the batch's index.
    async fn page(
        &self,
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError>;

    /// A run begins.
    fn begin(&self) {}

    /// Why the day must not be begun, if it must not. Asked once, before the first row.
    async fn refuses(&self, _table: &Table, _shards: u32, _on: NaiveDate) -> Result<Option<String>, TableError> {
        Ok(None)
    }

    /// Does what is due for one row on `today`, by `deadline`.
    async fn work(&self, due: &Due, today: NaiveDate, deadline: DateTime<Utc>) -> Done;
}
