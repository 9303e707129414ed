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

/// What a sweep did. `due` is counted from the index, the others as each row is done with, and they add up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    pub batch: Batch,
    pub date: NaiveDate,
    pub shards: Vec<u32>,
    pub counts: Counts,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// Where to go on, if the index was not walked to its end.
    pub next: Option<Position>,
    /// The index was walked to its end, whatever became of each row.
    pub complete: bool,
    /// Why it stopped by itself, or held back and went on to the end.
    pub stopped: Option<String>,
}

impl Report {
    /// Whether every row due is accounted for.
    pub fn adds_up(&self) -> bool {
        adds_up(&self.counts)
    }
}

/// Whether `due` is the sum of all the others.
pub fn adds_up(counts: &Counts) -> bool {
    let others: u64 = counts.iter().filter(|(name, _)| *name != "due").map(|(_, count)| count).sum();
    counts.get("due").copied().unwrap_or(0) == others
}
