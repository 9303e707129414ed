//! The sweep: one pass over all rows (subscriptions) that are due. The payment batch and the reminder batch use this
//! crate; this crate depends on neither batch.
//!
//! Guarantees:
//! - A sweep for a date processes every row that is due on or before this date, each row once.
//! - A row that fails never stops the other rows.
//! - The counts of rows by outcome add up to the number of rows that the index returned.
//! - If the batch runs again for a finished day, nothing changes except run records.
//!
//! There is deliberately no message queue, no job table and no retry of failed rows within a run: the next run finds
//! every unfinished row in the index.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod config;
mod daily_execution;
mod execution_messages;
mod monitor;
mod outcome;
mod parts;
mod report;
mod request;
mod row_log;
mod row_queue;
mod run;
mod run_totals;
mod shard_walk;
mod start_checks;
mod task;
mod walk;

pub use config::*;
pub use execution_messages::{BeginRequest, DailyExecutionError, ExecutionResult, ExecutionStart, FinishRequest};
pub use monitor::RunMonitor;
pub use outcome::{Outcome, RowResult};
pub use report::{FailedRow, RunReport};
pub use request::{BatchRequest, BatchRequestError};
pub use row_log::{ROW_FAILED_MESSAGE, ROW_PROCESSED_MESSAGE};
pub use run::time_left;
pub use run::{BatchResponse, Sweep, SweepError};
pub use run_totals::RunTotals;
pub use start_checks::MAX_CLOCK_DIFFERENCE;
pub use task::{BatchTask, CountsOf, DayToStart, RowResultOf, TotalsOf};
