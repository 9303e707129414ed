//! The sweep: one pass over everything that is due. It knows none of the batches that use it.
//!
//! What always holds: a sweep looks at everything due on or before its date, each row once; one bad row never stops
//! the others; the counts add up to what the index showed; running a finished day again changes nothing but run
//! records. Deliberately absent: a queue, a job table, a retry within a run. Whatever a run leaves, the next one finds
//! in the index.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod config;
mod daily_execution;
mod execution_messages;
mod parts;
mod queue;
mod report;
mod request;
mod run;
mod task;
mod walk;

pub use config::*;
pub use execution_messages::{Begin, Begun, ExecutionError, Finish, Finished};
pub use report::{Failure, Report};
pub use request::{BatchRequest, RequestError};
pub use run::time_left;
pub use run::{Answer, MAX_CLOCK_DIFFERENCE, Sweep, SweepError};
pub use task::{CountsOf, Done, DoneBy, Outcome, Task, Totals};
