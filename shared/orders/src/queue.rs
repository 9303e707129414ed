//! The order desk's queue: each payment that succeeded becomes an order.
//!
//! Messages are events as the bus tells them, at least once and in no order.

use billing::{CloudEvent, News, told};

use crate::{DeskError, OrderDesk, PlaceOutcome};

/// Logged once for each SKU without products. An alarm in `template.yaml` matches it.
pub const NO_PRODUCTS: &str = "a SKU has no products";

/// Why a message could not be worked on.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    #[error("a message is no event")]
    NoEvent,
    #[error(transparent)]
    Desk(#[from] DeskError),
}

impl TakeError {
    /// Whether the same message may be worked on later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Desk(error) if error.is_transient())
    }
}

/// Places the order of a payment, if `event`, a CloudEvent in JSON, tells of one that succeeded.
///
/// # Errors
/// [`TakeError`].
pub async fn take(desk: &OrderDesk, event: &str) -> Result<Option<PlaceOutcome>, TakeError> {
    let event = told(event).and_then(|event| serde_json::from_str::<CloudEvent>(&event).ok());
    let event = event.ok_or(TakeError::NoEvent)?;
    let News::PaymentSucceeded(paid) = event.body else { return Ok(None) };
    Ok(Some(desk.place(&paid.into()).await?))
}
