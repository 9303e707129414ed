//! Whether a day is done: judged by the run records of its shards, in one place, for the execution, the command and the API alike.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod asked_day;
mod completeness;
mod day;
mod shard_walks;

pub use asked_day::{AskedDay, around};
pub use completeness::{DayRecords, ShardProof};
pub use day::{DayReader, DayState};
pub use shard_walks::Walked;
