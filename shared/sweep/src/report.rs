//! The report of a run.

use chrono::NaiveDate;
use serde::Serialize;

use super::Outcome;
use store::{Batch, DueIndexPosition, OutcomeCounts as _, RunCounts};

/// The largest number of failed rows that a report lists. All failed rows are counted and logged.
pub(super) const MAX_LISTED_FAILURES: usize = 100;

/// A row (subscription) whose processing failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FailedRow {
    /// The key of the subscription's item, as text.
    pub key: String,
    pub reason: String,
}

/// The report of a run: its result for the operator or the state machine. `O` is the type of the batch's outcomes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunReport<O: Outcome> {
    pub batch: Batch,
    pub date: NaiveDate,
    pub shards: Vec<u32>,
    pub counts: O::Counts,
    #[serde(flatten)]
    pub totals: O::Totals,
    /// The number of days since the oldest row of the run became due; 0 if there was none. Rows that wait for a bank, a
    /// dispute or the customer do not count. Only the log contains this number.
    #[serde(skip)]
    pub oldest_due_days: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedRow>,
    /// The position in the index from which the next run continues; `None` if this run has read the index to its end.
    pub next: Option<DueIndexPosition>,
    /// Whether the run has read the index to its end, even if some rows failed.
    pub complete: bool,
    /// The reason, other than the time limit, why the run stopped early or left some rows to a later run; `None` if
    /// there is no such reason.
    pub stopped: Option<String>,
}

impl<O: Outcome> RunReport<O> {
    /// Creates the report of a run that has read `shards` to their end, with these `counts` and without failures.
    pub fn new(batch: Batch, date: NaiveDate, shards: Vec<u32>, counts: O::Counts) -> Self {
        Self {
            batch,
            date,
            shards,
            counts,
            totals: O::Totals::default(),
            oldest_due_days: 0,
            failures: Vec::new(),
            next: None,
            complete: true,
            stopped: None,
        }
    }

    /// Raises `oldest_due_days` to the age, on the day `today`, of a row that became due on `due`, if this age is higher.
    pub(super) fn add_due_date(&mut self, due: NaiveDate, today: NaiveDate) {
        let days = u64::try_from(today.signed_duration_since(due).num_days()).unwrap_or(0);
        self.oldest_due_days = self.oldest_due_days.max(days);
    }

    /// Returns whether this run has finished its rows: it reached the end of the index, did not stop early or defer
    /// rows, no row was left unfinished or was rejected, and the counts by outcome add up to the number of due rows.
    pub fn is_done(&self) -> bool {
        let counts: RunCounts = self.counts.into();
        let has_finished_rows = counts.unfinished() == 0 && counts.rejected() == 0;
        self.complete && self.stopped.is_none() && has_finished_rows && self.adds_up()
    }

    /// Returns whether the counts by outcome add up to the number of rows that were due.
    pub fn adds_up(&self) -> bool {
        self.counts.adds_up()
    }
}
