//! The report of a run.

use chrono::NaiveDate;
use serde::Serialize;

use store::{Batch, Counts, Position, RunCounts, RunSums};

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
    /// What was paid and what was declined, by currency.
    pub sums: RunSums,
    /// Payments that were charged before their reminder was sent.
    pub unreminded: u64,
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
    /// Whether the day is done as far as this run goes: it came to the end, did not stop or hold back, and left nothing
    /// failed, in doubt or rejected.
    pub fn is_done(&self) -> bool {
        let counts: RunCounts = self.counts.into();
        self.complete && self.stopped.is_none() && counts.left_behind() == 0 && counts.rejected() == 0
    }

    /// Whether every row due is accounted for.
    pub fn adds_up(&self) -> bool {
        self.counts.adds_up()
    }
}
