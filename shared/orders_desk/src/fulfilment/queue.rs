//! The processing of payment events: each succeeded payment becomes an order, and a refund of the whole payment cancels an
//! order that is not shipped yet.
//!
//! The queue can deliver the same event more than once, and can deliver events in any order.

use billing::{AccountId, EventData, ReceivedEvent, Sku, UnreadableEvent};

use crate::OrderDesk;
use crate::error::DeskError;
use crate::fulfilment::placing::PlaceOutcome;
use orders::RefundEvent;

/// The log message for a paid SKU without products, for which nothing is shipped. It is logged once for each SKU. A
/// metric filter in `template.yaml` matches this text, and an alarm uses the metric.
pub const SKU_WITHOUT_PRODUCTS_MESSAGE: &str = "a SKU has no products";

/// The message of the error for an event about a payment or a refund that is not recorded in the payments table. A metric filter in
/// `template.yaml` matches this text, and an alarm uses the metric.
pub const UNRECORDED_PAYMENT_MESSAGE: &str = "an event does not match the payments table";

/// The reason why an event could not be processed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessEventError {
    #[error(transparent)]
    Unreadable(#[from] UnreadableEvent),
    #[error(transparent)]
    Desk(#[from] DeskError),
    #[error(
        "{UNRECORDED_PAYMENT_MESSAGE}: there is no such receipt in the account {account}, or it has expired; no order is placed"
    )]
    NoReceipt { account: AccountId },
    #[error(
        "{UNRECORDED_PAYMENT_MESSAGE}: there is no such refund in the account {account}, or it has expired; it changes no order"
    )]
    NoRefund { account: AccountId },
}

impl ProcessEventError {
    /// Returns the name of the error, such as `WriteConflict`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "Unreadable",
            Self::Desk(error) => error.error_type(),
            Self::NoReceipt { .. } => "NoReceipt",
            Self::NoRefund { .. } => "NoRefund",
        }
    }

    /// Returns whether processing the same event again later can succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Desk(error) if error.is_transient())
    }
}

/// Places the order for a paid month if `event` is a `payment.succeeded` event. If its SKU has no products, no order is
/// placed, and a warning is logged once for the SKU. Records the refund if `event` is a `payment.refunded` or a
/// `payment.refund_failed` event. Other events change nothing.
///
/// # Errors
/// The event cannot be read, the order cannot be placed, the refund cannot be recorded, or the payments table does not contain the
/// payment or the refund.
pub async fn process_event(desk: &OrderDesk, event: &ReceivedEvent) -> Result<(), ProcessEventError> {
    let (refund, has_failed) = match &event.content()?.body {
        EventData::PaymentSucceeded(payment) => {
            match desk.place_order(&payment.clone().into()).await? {
                PlaceOutcome::NoProducts { sku, needs_report: true } => report_sku_without_products(desk, &sku).await,
                PlaceOutcome::NoReceipt => {
                    return Err(ProcessEventError::NoReceipt { account: payment.account.clone() });
                }
                PlaceOutcome::NoProducts { .. } | PlaceOutcome::Placed(_) | PlaceOutcome::AlreadyPlaced => {}
            }
            return Ok(());
        }
        EventData::PaymentRefunded(refund) => (refund, false),
        EventData::RefundFailed(refund) => (refund, true),
        _ => return Ok(()),
    };
    if !desk.has_refund(refund, has_failed).await? {
        return Err(ProcessEventError::NoRefund { account: refund.account.clone() });
    }
    Ok(desk.record_refund(&RefundEvent::new(refund.clone(), has_failed)).await?)
}

/// Logs a warning that `sku` has no products, and saves that it was logged, unless the merchant sells no goods. If the
/// table cannot be used, the next payment for the SKU logs the warning again.
async fn report_sku_without_products(desk: &OrderDesk, sku: &Sku) {
    match desk.sells_goods().await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => {
            tracing::warn!(%sku, %error, error_type = "Table", "failed to read whether the merchant sells goods");
            return;
        }
    }
    // Log the warning first, and then save that the SKU was reported, so that a process that stops in between does not
    // suppress the warning.
    tracing::warn!(
        %sku,
        "{SKU_WITHOUT_PRODUCTS_MESSAGE}: payments for this SKU create no orders until `dueday orders import` defines its \
         products"
    );
    if let Err(error) = desk.table.mark_without_products_reported(sku).await {
        tracing::warn!(%error, error_type = "Table", "failed to save that the SKU was reported; the report will be repeated");
    }
}
