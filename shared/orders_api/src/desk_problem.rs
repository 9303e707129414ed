//! The error responses of the routes that use the order desk.

use axum::response::{IntoResponse, Response};
use orders::{FollowUpError, MovementError, OrderLinesError};
use orders_desk::DeskError;
use rest::Problem;
use rest::etag::IfMatch;
use store::TableError;

/// A problem that a route of the order desk returns. It can be created from the errors of the desk. This crate cannot
/// implement these conversions for [`Problem`], because it defines neither `Problem` nor the errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeskProblem(pub Problem);

/// Checks that the header `If-Match` allows `version`, as a precondition of a change by the order desk.
pub(crate) fn check_version(if_match: &IfMatch, version: u64) -> Result<(), DeskProblem> {
    if_match.check_version(version).map_err(DeskProblem)
}

impl From<Problem> for DeskProblem {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<TableError> for DeskProblem {
    fn from(error: TableError) -> Self {
        Self(error.into())
    }
}

impl From<DeskError> for DeskProblem {
    /// Logs the error if its cause is not the request.
    fn from(error: DeskError) -> Self {
        Self(match error {
            DeskError::Table(error) => error.into(),
            DeskError::WriteConflict { .. } => {
                tracing::warn!(%error, error_type = error.error_type(), "the request failed after all retries: each time, another request changed the same items");
                Problem::concurrent_change()
            }
            DeskError::Transition(_)
            | DeskError::Correction(_)
            | DeskError::Products(_)
            | DeskError::OtherParcel(_)
            | DeskError::AlreadyRestored(_)
            | DeskError::StillHasCustomers { .. } => Problem::conflict(error.to_string()),
            // The response must be the same as for an order of another account, so that it does not reveal whether that
            // order exists.
            DeskError::NoOrder(_) => Problem::not_found("there is no such order"),
            DeskError::NoEmployee(_) | DeskError::NoAccount(_) => Problem::not_found(error.to_string()),
            DeskError::NoProduct(_) => Problem::refused_field("product", error),
            DeskError::Lines(error @ OrderLinesError::DuplicateProduct(_)) => Problem::refused_field("lines", error),
            DeskError::Lines(error) => Problem::invalid_field("lines", error),
            DeskError::FollowUp(
                FollowUpError::NoLines
                | FollowUpError::NothingLeft
                | FollowUpError::KeepNothingListed
                | FollowUpError::MoreThanOrdered { .. },
            ) => Problem::refused_field("lines", error),
            DeskError::FollowUp(_) => Problem::conflict(error.to_string()),
            DeskError::NoLines | DeskError::TooManyChanges(_) => Problem::refused_field("lines", error),
            DeskError::DeliveryMismatch(_) => Problem::refused_field("delivery", error),
            DeskError::MovementMismatch(_) => Problem::refused_field("movement", error),
            DeskError::Movement(error @ MovementError::SameWarehouse(_)) => {
                Problem::refused_field("to_warehouse", error)
            }
            DeskError::Movement(error) => Problem::conflict(error.to_string()),
            DeskError::BeforeCurrentJob(_) => Problem::conflict(error.to_string()),
            DeskError::UnknownReference { kind, .. } => Problem::refused_field(kind.name(), error),
            DeskError::DateOutOfRange { field, .. } => Problem::refused_field(field, error),
            DeskError::NoWarehouse(_) => Problem::refused_field("warehouse", error),
            DeskError::NotRepresentative(_) => Problem::refused_field("representative", error),
            DeskError::NoWarehouseInRegion { .. } => Problem::refused_field("region", error),
        })
    }
}

impl IntoResponse for DeskProblem {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}
