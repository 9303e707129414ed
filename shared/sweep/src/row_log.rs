//! The log lines of processed rows: one line for each row whose outcome a run has decided.

use store::{Batch, DueEntry, SubscriptionKey};
use ulid::Ulid;

use super::Outcome;

/// The log message of a row that was processed, with its outcome.
pub const ROW_PROCESSED_MESSAGE: &str = "a row was processed";
/// The log message of a row whose processing failed, with the reason.
pub const ROW_FAILED_MESSAGE: &str = "processing a row failed";

/// Logs the rows of one walk (the processing of one shard), with the walk's id and shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLog {
    pub batch: Batch,
    /// The id in the run record of the walk.
    pub run: Ulid,
    pub shard: u32,
}

impl RowLog {
    /// Logs that the row `due` was processed with `outcome`. An expected outcome, such as a successful payment, has the
    /// level DEBUG, which is off by default: Lambda charges for the bytes of log lines.
    pub fn log_outcome<O: Outcome>(self, due: &DueEntry, outcome: O) {
        let Self { batch, run, shard } = self;
        let SubscriptionKey { account, subscription, .. } = &due.key;
        let (due_on, name): (_, &'static str) = (due.due_on, outcome.into());
        if outcome.is_expected() {
            tracing::debug!(%batch, %run, shard, %account, %subscription, %due_on, outcome = name, "{ROW_PROCESSED_MESSAGE}");
        } else {
            tracing::info!(%batch, %run, shard, %account, %subscription, %due_on, outcome = name, "{ROW_PROCESSED_MESSAGE}");
        }
    }

    /// Logs that the processing of the row `due` failed with an error of the type `error_type`, for the reason
    /// `reason`.
    pub fn log_failure(self, due: &DueEntry, error_type: &'static str, reason: &str) {
        let Self { batch, run, shard } = self;
        let SubscriptionKey { account, subscription, .. } = &due.key;
        let due_on = due.due_on;
        tracing::error!(%batch, %run, shard, %account, %subscription, %due_on, error_type, reason, "{ROW_FAILED_MESSAGE}");
    }

    /// Logs that the index entry `key` of a row cannot be read, for the reason `reason`.
    pub fn log_unreadable(self, key: &str, reason: &str) {
        let Self { batch, run, shard } = self;
        tracing::error!(%batch, %run, shard, key, error_type = "Unreadable", reason, "{ROW_FAILED_MESSAGE}");
    }
}
