//! The one way through the money. The engine ([`ChargingEngine`]) has two doors: it looks an attempt up at the gateway
//! (`lookup.rs`), and it applies what the gateway reports (`apply.rs`). A report settles an attempt, is stored as a
//! finding, or leaves the attempt open, for a reason ([`ApplyResult`]). A [`Charger`] claims due payments, charges them
//! through these doors, and takes over attempts in doubt.
//!
//! A success passes these types: `ChargeResponse` (of the gateway), `AttemptOutcome`, [`ApplyResult`], and in a run the result and
//! the outcome of its row. In a take-over, `InDoubtResolution` (the rule about what a look-up has found) replaces `ChargeResponse`.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod apply;
mod breaker;
mod charge;
mod charge_request_metrics;
mod charge_run;
mod charger;
mod claim;
mod config;
mod engine;
mod findings;
mod first_payment;
mod gateway_account;
mod lookup;
mod older_table;
mod open_attempt;
mod reported_payment;
mod request_pace;
mod sign_up;
mod take_over;
mod uncounted_charges;

pub use apply::{ApplyError, ApplyResult, OpenReason, WrittenSettlement};
pub use charge_request_metrics::ChargeRequestMetrics;
pub use charge_run::{ChargeContext, ChargeRun};
pub use charger::{Charger, GATEWAY_TIMEOUT};
pub use claim::{ChargePermit, NotClaimed};
pub use config::*;
pub use engine::ChargingEngine;
pub use findings::{FindingDecision, FindingError, PAYMENT_WITHOUT_RECEIPT_MESSAGE, unresolved_findings};
pub use first_payment::{FirstPayment, SubscriptionWithFirstPayment};
pub use lookup::LookUpError;
pub(crate) use lookup::LookedUp;
pub use older_table::OlderTableCheck;
pub use open_attempt::StatedOutcome;
pub use sign_up::{SIGN_UP_GATEWAY_TIMEOUT, SignUpCharges};
pub use uncounted_charges::UncountedCharges;
