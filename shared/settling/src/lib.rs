//! What a gateway reports becomes stored state: attempts that are settled, payments without a receipt, refunds, disputes, and
//! payment methods that customers gave.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod disputes;
mod findings;
mod lookup;
mod ours;
mod refunds;
mod resolve;
mod settle;
mod setups;

pub use disputes::Disputes;
pub use findings::{Decision, FindingError, Findings, Late, NO_RECEIPT, unresolved};
pub use lookup::{paid_twice, payments_since};
pub use ours::Ours;
pub use refunds::*;
pub use resolve::{Known, Resolved, Resolving};
pub use settle::{SettleError, SettledAs, Settling};
pub use setups::{SetupError, Setups};
