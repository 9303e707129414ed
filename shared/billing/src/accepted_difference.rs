//! Accepted differences: a person has decided that a difference between the table and the gateway stays.

use chrono::{DateTime, NaiveDate, Utc};

use super::{DifferenceKind, Label};

/// A difference between the table and the gateway that a person has accepted. Later comparisons of the same day count it
/// as accepted, and do not report it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcceptedDifference {
    /// The compared day in UTC.
    pub on: NaiveDate,
    pub kind: DifferenceKind,
    /// The id of the difference: that of the payment, refund or dispute.
    pub id: String,
    /// The reason that the person gave.
    pub reason: Label,
    pub at: DateTime<Utc>,
}
