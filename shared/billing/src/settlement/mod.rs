//! From the claim of a payment to its outcome: the rules for an unknown outcome, the effect of an outcome on the subscription, and catch-up.

pub(crate) mod attempts_in_doubt;
pub(crate) mod catch_up;
pub(crate) mod idempotency_key;
pub(crate) mod settle;
