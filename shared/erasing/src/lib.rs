//! The erasure of accounts. `DELETE /accounts/{account}` or `dueday account erase` requests an erasure, and [`Eraser`]
//! carries out the erasure. It removes the personal data of the account from the table of payments and from the table
//! of the order desk. It keeps the records of payments that the law requires, but in these records only the id of the
//! account.
//!
//! Every step can be interrupted after each request and then repeated, because removing an item twice has no further
//! effect. The item of the erasure contains the progress. The module `request` checks whether an account may be
//! erased.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod eraser;
mod request;

pub use eraser::{Eraser, ErasingReport};
pub use request::{ErasureRequestError, ErasureState, request_erasure};

/// The log message of an erasure that failed. A metric filter in `template.yaml` matches this text.
pub const ERASURE_FAILED_MESSAGE: &str = "the erasure of an account failed";
/// The log message of an erasure that has waited for [`billing::Erasure::MAX_WAIT`]. A metric filter in `template.yaml`
/// matches this text.
pub const ERASURE_OVERDUE_MESSAGE: &str = "the erasure of an account waits for two weeks";
