//! What is kept of a subscription's payments.

use super::{AttemptRecord, Receipt, WaivedPeriod};

/// What is kept of one subscription's payments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Records {
    pub receipts: Vec<Receipt>,
    /// Those that did not succeed, in the order of their numbers.
    pub attempts: Vec<AttemptRecord>,
    pub waived: Vec<WaivedPeriod>,
}
