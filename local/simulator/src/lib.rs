//! Years in seconds: months in a private table in memory, as fast as they can pass, calm or in trouble; and those who
//! judge what came of them.
//!
//! The checker and the oracle share no code with what they judge: they read the stored items attribute by attribute and
//! have a calendar of their own.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod books;
mod calendar;
mod change;
mod checker;
mod company;
mod daily_runs;
mod error;
mod history;
mod invariant;
mod json;
mod lagging_index;
mod listener;
mod moody_gateway;
mod oracle;
mod order_books;
mod play;
mod played_gateway;
mod population;
mod random_faults;
mod schedule;
mod simulation;
mod stored;
mod stripe_gateway;

pub use books::{Books, LedgerCharge};
pub use checker::check;
pub use company::{Company, CompanySize, euro};
pub use daily_runs::DailyRuns;
pub use error::SimulationError;
pub use invariant::{Finding, Invariant};
pub use oracle::Judged;
pub use order_books::{OrderBooks, StoredEdge, StoredOrder};
pub use play::{Played, Setting, play, play_seeds};
pub use played_gateway::GatewayKind;
pub use population::{Enrolment, population};
pub use random_faults::Odds;
pub use simulation::{Progress, Simulation, simulate};
pub use stored::{
    StoredAttempt, StoredOutcome, StoredReceipt, StoredRun, StoredStatus, StoredSubscription, StoredWaiver, Who,
};
