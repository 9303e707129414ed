//! The report of a run.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;

use store::{Batch, Counts, Position, RunCounts, RunSums};

/// A row (subscription) whose processing failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Failure {
    /// The key of the subscription's item, as text.
    pub key: String,
    pub reason: String,
}

/// The report of a run: its result for the operator or the state machine. `C` is the type of the batch's row counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report<C> {
    pub batch: Batch,
    pub date: NaiveDate,
    pub shards: Vec<u32>,
    pub counts: C,
    /// The sums of the successful and of the declined payments, by currency.
    pub sums: RunSums,
    /// The number of payments that were charged although their reminder had not been sent.
    pub unreminded: u64,
    /// The number of days since the oldest row of the run became due; 0 if there was none. Rows that wait for a bank, a
    /// dispute or the customer do not count. Only the log contains this number.
    #[serde(skip)]
    pub oldest_due_days: u64,
    /// The number of complete hours since the first claim of the oldest attempt that the run has left open with an
    /// unknown outcome; 0 if there is none. An attempt does not count if the gateway has responded to its look-up. Only
    /// the log contains this number.
    #[serde(skip)]
    pub oldest_in_doubt_hours: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// The position in the index from which the next run continues; `None` if this run has read the index to its end.
    pub next: Option<Position>,
    /// Whether the run has read the index to its end, even if some rows failed.
    pub complete: bool,
    /// The reason, other than the time limit, why the run stopped early or left some rows to a later run; `None` if
    /// there is no such reason.
    pub stopped: Option<String>,
}

impl<C> Report<C> {
    /// Creates the report of a run that has read `shards` to their end, with these `counts` and without failures.
    pub fn new(batch: Batch, date: NaiveDate, shards: Vec<u32>, counts: C) -> Self {
        Self {
            batch,
            date,
            shards,
            counts,
            sums: RunSums::default(),
            unreminded: 0,
            oldest_due_days: 0,
            oldest_in_doubt_hours: 0,
            failures: Vec::new(),
            next: None,
            complete: true,
            stopped: None,
        }
    }

    /// Raises `oldest_due_days` and `oldest_in_doubt_hours` to the ages that were found in one shard, if these ages are
    /// higher: the age of the row that became due on `oldest_due`, and the age of the attempt in doubt that was claimed
    /// at `oldest_in_doubt`.
    pub(super) fn raise_oldest_ages(
        &mut self,
        (oldest_due, today): (Option<NaiveDate>, NaiveDate),
        (oldest_in_doubt, now): (Option<DateTime<Utc>>, DateTime<Utc>),
    ) {
        let days = oldest_due.map_or(0, |on| today.signed_duration_since(on).num_days());
        let hours = oldest_in_doubt.map_or(0, |at| now.signed_duration_since(at).num_hours());
        self.oldest_due_days = self.oldest_due_days.max(u64::try_from(days).unwrap_or(0));
        self.oldest_in_doubt_hours = self.oldest_in_doubt_hours.max(u64::try_from(hours).unwrap_or(0));
    }
}

impl<C: Counts> Report<C> {
    /// Returns whether this run has finished its rows: it reached the end of the index, did not stop early or defer
    /// rows, no row failed, is in doubt or was rejected, and the counts by outcome add up to the number of due rows.
    pub fn is_done(&self) -> bool {
        let counts: RunCounts = self.counts.into();
        let has_finished_rows = counts.unfinished() == 0 && counts.payments_rejected() == 0;
        self.complete && self.stopped.is_none() && has_finished_rows && self.adds_up()
    }

    /// Returns whether the counts by outcome add up to the number of rows that were due.
    pub fn adds_up(&self) -> bool {
        self.counts.adds_up()
    }
}
