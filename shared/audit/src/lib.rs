//! The audit: why a subscription was charged on a day or was not. It reads records and
//! writes nothing.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod explanation;
mod forecast;
mod gateway_lists;
mod invariants;
mod reconciliation;
mod report;
mod sentence;
mod unfinished_runs;
mod why;

pub use explanation::{Explanation, Reason, explain};
pub use forecast::forecast;
pub use gateway_lists::GatewayLists;
pub use invariants::{Broken, Invariant, Judge};
pub use reconciliation::Reconciliation;
pub use report::{Reading, Report, ReportedDay, Taken, UnsettledNow, report, reported_from};
pub use unfinished_runs::unfinished_runs;
pub use why::{Next, Why, why};
