//! The audit: whether a day was done, and why a subscription was charged on a day or was not. It reads records and
//! writes nothing.

mod asked_day;
mod completeness;
mod day;
mod explanation;
mod forecast;
mod gateway_lists;
mod invariants;
mod reconciliation;
mod report;
mod sentence;
mod shard_walks;
mod unfinished_runs;
mod why;

pub use asked_day::AskedDay;
pub use completeness::{DayRecords, ShardProof, Walked};
pub use day::{DayReader, DayState};
pub use explanation::{Explanation, Reason, explain};
pub use forecast::forecast;
pub use gateway_lists::GatewayLists;
pub use invariants::{Broken, Invariant, Judge};
pub use reconciliation::Reconciliation;
pub use report::{Reading, Report, ReportedDay, Taken, UnsettledNow, report, reported_from};
pub use unfinished_runs::unfinished_runs;
pub use why::{Next, Why, why};
