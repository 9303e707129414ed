//! Changes that settle or waive months: pause, cancellation, months paid elsewhere, disputes, findings, and the erasure of an account.

pub(crate) mod after_dispute;
pub(crate) mod cancellation;
pub(crate) mod erasure;
pub(crate) mod finding;
pub(crate) mod owed_month;
pub(crate) mod pause;
