//! The payment batch: claim, charge, settle; and for an attempt in doubt: take over, look up, settle or charge again.

mod breaker;
mod charge;
mod resolve;

pub use charge::{ChargeDue, GATEWAY_TIMEOUT};
pub use resolve::{Known, Resolved, resolve_by_hand};
