//! Determines from the run records whether a batch (of payments or reminders) has processed all due rows of a day. The
//! daily execution, the command and the API all use this crate, so that they get the same result.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod completeness;
mod concern;
mod day;
mod find_concerns;
mod late_payments;
mod postponed_payments;
mod proven_day;
mod queue_state;
mod rejected_payments;
mod requested_day;
mod run_facts;
mod shard_walks;
mod system_facts;
mod system_status;

pub use completeness::{DayRecords, ShardProof};
pub use concern::{CHARGING_OFF_MESSAGE, Concern};
pub use day::{DayReader, DayState, incomplete_batches};
pub use find_concerns::{MAX_AUDIT_DURATION, MAX_BEHIND_LATEST_RUN, find_concerns, find_run_concerns};
pub use postponed_payments::{count_postponed_payments, describe_postponed_payments};
pub use proven_day::ProvenDay;
pub use queue_state::{QUEUE_OF_HEARTBEATS, QueueState, SQS_ATTRIBUTES};
pub use requested_day::{RequestedDay, relevant_records};
pub use run_facts::RunFacts;
pub use shard_walks::ShardState;
pub use system_facts::{CheckSchedule, LatestAudit, LatestComparison, SystemFacts};
pub use system_status::{BatchDay, ChargedToday, ProcessFacts, SystemStatus};
