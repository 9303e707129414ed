//! The responses to the errors of the payment gateway, of payment method setups, of refunds and of the delivery queue.
//! Errors whose cause is not the request are logged here.

use billing::RefundRefusal;
use gateway_objects::{RefundError, SetupError};
use gateways::GatewayError;
use outbound::QueueError;
use rest::Problem;

/// Returns the response to an error of a payment method setup.
pub fn setup_problem(error: SetupError) -> Problem {
    match error {
        SetupError::Table(error) => error.into(),
        SetupError::Gateway(error) => gateway_problem(&error),
        SetupError::NoSubscription(_) | SetupError::Cancelled(_) => Problem::refused_field("subscriptions", error),
    }
}

/// Returns the response to an error of a refund.
pub fn refund_problem(error: RefundError) -> Problem {
    match error {
        RefundError::Table(error) => error.into(),
        RefundError::Gateway(error) => gateway_problem(&error),
        RefundError::NoReceipt | RefundError::NoRefund { .. } => Problem::not_found(error.to_string()),
        RefundError::Refused(RefundRefusal::FullyRefunded) => Problem::conflict(error.to_string()),
        RefundError::Refused(RefundRefusal::Disputed { .. }) => {
            Problem::payment_disputed(format!("{error}; `although_disputed` permits a higher amount"))
        }
        RefundError::Refused(RefundRefusal::OverDailyLimit { .. }) => Problem::over_refund_limit(error.to_string()),
        RefundError::Refused(RefundRefusal::InvalidAmount { .. }) => Problem::refused_field("amount", error),
        RefundError::AmountMismatch { .. } => Problem::idempotency_key_reused(),
        RefundError::InProgress => Problem::concurrent_change(),
        RefundError::SucceededAfterFailure { .. } => {
            tracing::error!(%error, error_type = error.error_type(), "a refund is stored as failed but succeeded at the payment gateway");
            Problem::internal_error()
        }
    }
}

/// Returns the response to an error of the queue of pending deliveries.
pub fn queue_problem(error: QueueError) -> Problem {
    tracing::error!(%error, error_type = "Queue", "the delivery queue is unavailable");
    Problem::unavailable()
}

/// Returns the response to an error of the payment gateway.
fn gateway_problem(error: &GatewayError) -> Problem {
    match error {
        GatewayError::Unusable { .. } => {
            tracing::error!(%error, error_type = error.error_type(), "the payment gateway cannot be used");
        }
        GatewayError::Unknown { .. } | GatewayError::Unreadable { .. } | GatewayError::Throttled { .. } => {
            tracing::warn!(%error, error_type = error.error_type(), "the payment gateway sent no usable response");
        }
    }
    Problem::unavailable()
}
