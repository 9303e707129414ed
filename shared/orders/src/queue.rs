//! The order desk's queue: each payment that succeeded becomes an order.
//!
//! Events come at least once and in no order.

use billing::{News, ReceivedEvent, UnreadableEvent};

use crate::{DeskError, OrderDesk, PlaceOutcome};

/// Logged once for each SKU without products. An alarm in `template.yaml` matches it.
pub const NO_PRODUCTS: &str = "a SKU has no products";

/// Why an event could not be worked on.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    #[error(transparent)]
    Unreadable(#[from] UnreadableEvent),
    #[error(transparent)]
    Desk(#[from] DeskError),
}

impl TakeError {
    /// Whether the same event may be worked on later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Desk(error) if error.is_transient())
    }
}

/// Places the order of a payment, if `event` is about a payment that succeeded.
///
/// # Errors
/// [`TakeError`]: the event cannot be read, or the order cannot be placed.
pub async fn take(desk: &OrderDesk, event: &ReceivedEvent) -> Result<Option<PlaceOutcome>, TakeError> {
    let News::PaymentSucceeded(paid) = &event.content()?.body else { return Ok(None) };
    Ok(Some(desk.place(&paid.clone().into()).await?))
}
