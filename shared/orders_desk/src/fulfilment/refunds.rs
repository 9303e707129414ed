//! Refunds of payments: if the payment of a month is refunded in full, the orders of the month that are not shipped yet are
//! cancelled.

use crate::error::DeskError;
use crate::{MAX_ATTEMPTS, OrderDesk};
use orders::{Order, OrderRefunds, OrderStatus, RefundEvent};
use orders_table::{OrderChangeRecords, WriteOutcome};

impl OrderDesk {
    /// Records a refund, and subtracts its amount from the quarter total of the order's representative. If the payment is
    /// refunded completely, cancels the order and its follow-up orders that are not shipped yet, and restores their stock. If
    /// the order is not placed yet, the refund is subtracted when the order is placed. If the refund is recorded already, only
    /// cancels the follow-up orders that an earlier call did not cancel.
    ///
    /// # Errors
    /// Other requests changed the order at the same time, or the table cannot be used. It is safe to repeat the call.
    pub async fn record_refund(&self, event: &RefundEvent) -> Result<(), DeskError> {
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.table.get_refunds(event.order).await?;
            let before = stored.clone().unwrap_or_else(|| OrderRefunds::none(event.order));
            let order = self.table.get_order(event.order).await?;
            let Some(after) = before.after_event(event) else {
                return match order {
                    Some((order, _)) => self.cancel_refunded_follow_ups(&order).await,
                    None => Ok(()),
                };
            };
            let mut main = None;
            let written = match order {
                None => self.table.store_refunds(stored.as_ref(), &after, &event.account).await?,
                Some((order, lines)) => {
                    if event.has_failed && order.status == OrderStatus::Cancelled && order.is_refunded_in_full() {
                        tracing::warn!(order = %order.id, "a refund failed after its order was cancelled");
                    }
                    let refunded = order.refunded_by(&after);
                    let refunds = Some((stored.as_ref(), &after));
                    let records = OrderChangeRecords { refunds, ..OrderChangeRecords::default() };
                    let change = self.clock.ulid();
                    let written = self.table.change_order(&order, &refunded, &lines, records, change).await?;
                    main = Some(refunded);
                    written
                }
            };
            if written == WriteOutcome::Done {
                return match &main {
                    Some(main) => self.cancel_refunded_follow_ups(main).await,
                    None => Ok(()),
                };
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {}", event.order) })
    }

    /// If the payment of the month is refunded in full, cancels the follow-up orders of the main order `main` that are
    /// not shipped yet. After a refund in full, the order desk refuses to create further follow-up orders.
    async fn cancel_refunded_follow_ups(&self, main: &Order) -> Result<(), DeskError> {
        if !main.is_refunded_in_full() {
            return Ok(());
        }
        for id in main.follow_up_ids() {
            match self.advance_order(id, OrderStatus::Cancelled).await {
                // A follow-up order that is shipped already cannot be cancelled, so its transition is refused.
                Ok(_) | Err(DeskError::Transition(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
