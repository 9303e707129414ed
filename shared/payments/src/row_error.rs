//! The reasons why the processing of a row fails. The run reports and logs them, and continues with the other rows.

use billing::AttemptContradiction;
use charging::ApplyError;
use chrono::{DateTime, NaiveDate, Utc};
use gateways::GatewayError;
use store::TableError;

use super::RowResult;

/// The reason why the processing of a row failed. The name of the variant is the `error_type` in the log, so a variant
/// keeps its name.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
pub(super) enum RowError {
    /// The index compares dates as text, so a damaged date may be sorted wrongly. A payment with a later date must not
    /// be charged.
    #[error("the index contains the due date {on}, which is after {today}")]
    IndexDateInFuture { on: NaiveDate, today: NaiveDate },
    /// The subscription is inconsistent: its next payment date is before its due date.
    #[error("the next payment date {on} is before the due date {due_on}; correct the item")]
    DueLater { on: NaiveDate, due_on: NaiveDate },
    /// The subscription is inconsistent: the month of its due date is already paid.
    #[error("the month of the due date {due_on} is already paid; correct the item")]
    AlreadyPaid { due_on: NaiveDate },
    /// The subscription is not charged, and the day is not complete until a person resolves the finding.
    #[error(
        "not charged: a successful payment for the due date {due_on}, or for a later one, has no receipt; resolve its finding (dueday findings)"
    )]
    OpenFinding { due_on: NaiveDate },
    #[error("the attempt has been in doubt since {}: {error}; resolve it by hand", format_minute(.since))]
    InDoubtTooLong { since: DateTime<Utc>, error: GatewayError },
    #[error("the bank has been processing the payment since {}: ask the gateway about this payment", format_minute(.since))]
    ProcessingTooLong { since: DateTime<Utc> },
    /// The gateway has more than one successful payment of the same month. Only one of them gets the receipt of the
    /// month. A person must refund the others.
    #[error("{0}")]
    PaidTwice(String),
    /// The attempt contradicts its subscription, so it is not charged again.
    #[error("{0}; correct the item, see the audit (dueday audit)")]
    AttemptContradiction(AttemptContradiction),
    #[error("{0}")]
    Table(TableError),
    #[error("{0}")]
    MissingReceipt(ApplyError),
    #[error("{0}")]
    PaymentContradiction(ApplyError),
}

impl From<ApplyError> for RowError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Table(error) => Self::Table(error),
            error @ ApplyError::MissingReceipt { .. } => Self::MissingReceipt(error),
            error @ ApplyError::Contradicts { .. } => Self::PaymentContradiction(error),
        }
    }
}

impl From<RowError> for RowResult {
    fn from(error: RowError) -> Self {
        Self::Failed { error_type: (&error).into(), reason: error.to_string() }
    }
}

/// Returns the text of the time `at`, without seconds.
fn format_minute(at: &DateTime<Utc>) -> impl std::fmt::Display + use<> {
    at.format("%Y-%m-%d %H:%M UTC")
}
