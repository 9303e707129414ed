//! The errors of a simulation.

use chrono::NaiveDate;
use deployment::CreateSubscriptionError;
use store::TableError;
use sweep::SweepError;

/// The reason why a simulation could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    #[error("the simulated months are outside of the supported dates; choose another start or fewer months")]
    Calendar,
    #[error("the subscription of account {account} cannot be created: {source}")]
    CreateSubscription { account: String, source: CreateSubscriptionError },
    #[error("a batch run did not reach the end of the index, or the counts in its report do not add up: {report}")]
    Unfinished { report: String },
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("the day {on} cannot be compared with the gateway: {reason}")]
    Comparison { on: NaiveDate, reason: String },
    #[error("the runtime cannot be created: {0}")]
    Runtime(String),
    #[error("the embedded DynamoDB engine rejected a request: {0}")]
    Engine(String),
}
