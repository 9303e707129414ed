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
mod copied_table;
mod daily_execution;
mod execution_messages;
mod monitor;
mod parts;
mod queue;
mod report;
mod request;
mod row_log;
mod run;
mod run_totals;
mod task;
mod walk;

pub use config::*;
pub use copied_table::reason_to_refuse_copied_table;
pub use execution_messages::{BeginRequest, ExecutionError, ExecutionResult, ExecutionStart, FinishRequest};
pub use monitor::RunMonitor;
pub use report::{Failure, Report};
pub use request::{BatchRequest, RequestError};
pub use row_log::{ROW_FAILED_MESSAGE, ROW_PROCESSED_MESSAGE};
pub use run::time_left;
pub use run::{BatchResponse, MAX_CLOCK_DIFFERENCE, Sweep, SweepError};
pub use run_totals::RunTotals;
pub use task::{CountsOf, Outcome, RowResult, RowResultOf, Task};
