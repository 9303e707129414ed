//! Refunds of payments: an order whose payment is refunded before the shipment is cancelled.

use super::super::table::{ChangeRecords, WriteOutcome};
use super::super::{OrderRefunds, OrderStatus, RefundNews};
use super::{DeskError, MAX_RETRIES, OrderDesk};

impl OrderDesk {
    /// Records a refund, and subtracts its amount from the quarter total of the order's representative. If the payment is
    /// refunded completely and the order is not shipped yet, cancels the order and restores its stock. If the order is not
    /// placed yet, placing it takes the refund into account. Nothing changes if the refund is recorded already.
    ///
    /// # Errors
    /// Other requests changed the order at the same time, or the table cannot be used. It is safe to repeat the call.
    pub async fn record_refund(&self, news: &RefundNews) -> Result<(), DeskError> {
        for _ in 0..MAX_RETRIES {
            let stored = self.table.get_refunds(news.order).await?;
            let before = stored.clone().unwrap_or_else(|| OrderRefunds::none(news.order));
            let Some(after) = before.after(news) else { return Ok(()) };
            let written = match self.table.get_order(news.order).await? {
                None => self.table.store_refunds(stored.as_ref(), &after, &news.account).await?,
                Some((order, lines)) => {
                    if news.has_failed && order.status == OrderStatus::Cancelled && order.is_refunded_in_full() {
                        tracing::warn!(order = %order.id, "a refund failed after its order was cancelled");
                    }
                    let refunded = order.refunded_by(&after);
                    let refunds = Some((stored.as_ref(), &after));
                    let records = ChangeRecords { refunds, ..ChangeRecords::default() };
                    self.table.change_order(&order, &refunded, &lines, records, self.clock.ulid()).await?
                }
            };
            if written == WriteOutcome::Done {
                return Ok(());
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {}", news.order) })
    }
}
