//! The daily batches: one sweep, and its two uses.
//!
//! What always holds: a sweep looks at everything due on or before its date, each row once; one bad row never stops
//! the others; the counts add up to what the index showed; running a finished day again changes nothing but run
//! records. Deliberately absent: a queue, a job table, a retry within a run. Whatever a run leaves, the next one finds
//! in the index.

mod answer;
#[cfg(feature = "gateway")]
mod charge;
mod explain;
mod proof;
#[cfg(feature = "mail")]
mod remind;
mod report;
mod request;
mod resolve;
mod sweep;
mod task;
#[cfg(feature = "gateway")]
mod unanswered;

#[cfg(feature = "gateway")]
pub use charge::{ChargeDue, GATEWAY_TIMEOUT};
pub use explain::{Explanation, Verdict, explain};
pub use proof::{ShardProof, Walked, prove};
#[cfg(feature = "mail")]
pub use remind::RemindDue;
pub use report::{Failure, Report};
pub use request::{BatchRequest, RequestError};
pub use resolve::{Known, Resolved, resolve_by_hand};
pub use sweep::{Limits, Sweep, SweepError};
pub use task::{Done, Task};
