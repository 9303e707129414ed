//! The outcomes of rows (subscriptions), by which a run counts its rows. Each batch has its own outcomes.

use std::fmt::Debug;

use super::RunTotals;
use store::OutcomeCounts;

/// The outcome of a processed row. A run counts its rows by outcome. Each batch has its own outcomes. The conversion
/// into text returns the name of the outcome in log lines, such as `in_doubt`, which is also the name of its row count.
pub trait Outcome: Copy + PartialEq + Eq + Debug + Send + Sync + Into<&'static str> {
    /// The counts of the batch's rows by outcome.
    type Counts: OutcomeCounts;
    /// The totals of the batch's runs in addition to the row counts.
    type Totals: RunTotals;

    /// Returns the counter for rows with this outcome in `counts`.
    fn counter_in(self, counts: &mut Self::Counts) -> &mut u64;

    /// Returns whether a row with this outcome needs no attention. Its log line has the level DEBUG.
    fn is_expected(self) -> bool;

    /// Returns whether a row with this outcome was due and could be processed. A row that was not due any more, or that
    /// waits for a bank, a dispute or the customer, does not count for the age of the oldest due row.
    fn was_workable(self) -> bool;
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
