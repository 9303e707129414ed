//! Accepted differences between the table and the payment gateway: a person has decided that nothing is corrected.

use chrono::{DateTime, NaiveDate, Utc};

use crate::checks::day_reconciliation::DifferenceKind;
use crate::values::contact_data::Label;

/// A difference between the table and the gateway that a person has accepted. Later comparisons of the same day count
/// it as accepted, and do not report it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcceptedDifference {
    /// The day (UTC) whose payments, refunds and disputes were compared.
    pub on: NaiveDate,
    pub kind: DifferenceKind,
    /// The id of the difference, as in [`GatewayDifference::id`](crate::checks::day_reconciliation::GatewayDifference::id).
    pub id: String,
    /// The reason that the person gave.
    pub reason: Label,
    /// When the person accepted the difference.
    pub at: DateTime<Utc>,
}
