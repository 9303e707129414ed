//! The processing of payment events: each succeeded payment becomes an order, and a refund of the whole payment cancels an
//! order that is not shipped yet.
//!
//! The queue can deliver the same event more than once, and can deliver events in any order.

use billing::{EventData, ReceivedEvent, UnreadableEvent};

use crate::{DeskError, OrderDesk, PlaceOutcome, RefundEvent};

/// The log message for a paid SKU without products, for which nothing is shipped. It is logged once for each SKU. A
/// metric filter in `template.yaml` matches this text, and an alarm uses the metric.
pub const SKU_WITHOUT_PRODUCTS_MESSAGE: &str = "a SKU has no products";

/// The reason why an event could not be processed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessEventError {
    #[error(transparent)]
    Unreadable(#[from] UnreadableEvent),
    #[error(transparent)]
    Desk(#[from] DeskError),
}

impl ProcessEventError {
    /// Returns the name of the error, such as `WriteConflict`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "Unreadable",
            Self::Desk(error) => error.error_type(),
        }
    }

    /// Returns whether processing the same event again later can succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Desk(error) if error.is_transient())
    }
}

/// Places the order for a paid month if `event` is a `payment.succeeded` event. Records the refund if `event` is a
/// `payment.refunded` or a `payment.refund_failed` event. Returns `None` for events that place no order.
///
/// # Errors
/// The event cannot be read, the order cannot be placed, or the refund cannot be recorded.
pub async fn process_event(desk: &OrderDesk, event: &ReceivedEvent) -> Result<Option<PlaceOutcome>, ProcessEventError> {
    let refund = match &event.content()?.body {
        EventData::PaymentSucceeded(payment) => return Ok(Some(desk.place(&payment.clone().into()).await?)),
        EventData::PaymentRefunded(refund) => RefundEvent::new(refund.clone(), false),
        EventData::RefundFailed(refund) => RefundEvent::new(refund.clone(), true),
        _ => return Ok(None),
    };
    desk.record_refund(&refund).await?;
    Ok(None)
}
