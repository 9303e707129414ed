//! What a sweep answers.

use chrono::NaiveDate;
use serde::Serialize;

use crate::table::{Batch, Counts, Position};

/// A row that could not be done with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Failure {
    pub key: String,
    pub reason: String,
}

/// What a sweep did, with the counts of its batch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report<C> {
    pub batch: Batch,
    pub date: NaiveDate,
    pub shards: Vec<u32>,
    pub counts: C,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// Where to go on, if the index was not walked to its end.
    pub next: Option<Position>,
    /// The index was walked to its end, whatever became of each row.
    pub complete: bool,
    /// Why it stopped by itself, or held back and went on to the end.
    pub stopped: Option<String>,
}

impl<C: Counts> Report<C> {
    /// Whether every row due is accounted for.
    pub fn adds_up(&self) -> bool {
        self.counts.adds_up()
    }
}
