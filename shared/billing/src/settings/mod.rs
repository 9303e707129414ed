//! The settings of the merchant: retries, catch-up, reminders, and the limits that protect customers from a wrong price.

pub(crate) mod ceilings;
pub(crate) mod dunning;
pub(crate) mod payment_limits;
pub(crate) mod policy;
pub(crate) mod policy_setting;
