//! The receipts and refunds in the payments table, with which the function compares the events that it receives.

use std::sync::Arc;

use async_trait::async_trait;
use billing::{ReceiptId, Refund, RefundEventData, RefundStatus};
use clock::Clock;
use orders::PaidPeriod;
use orders_desk::PaymentLookup;
use store::{Table, TableError};

/// Reads receipts and refunds in the payments table. Every program with the right to send to the bus or to the queue can send an
/// event, but only the functions that charge and refund write these items.
#[derive(Debug)]
pub struct PaymentsReader {
    table: Table,
    clock: Arc<dyn Clock>,
}

impl PaymentsReader {
    /// Creates the reader of the payments table `table`.
    pub fn new(table: Table, clock: Arc<dyn Clock>) -> Self {
        Self { table, clock }
    }
}

#[async_trait]
impl PaymentLookup for PaymentsReader {
    /// Sends one strongly consistent GetItem request.
    async fn has_receipt(&self, paid: &PaidPeriod) -> Result<bool, TableError> {
        let id = ReceiptId { due_on: paid.order.due_on, subscription: paid.order.subscription, sku: paid.sku.clone() };
        let receipt = self.table.get_receipt(&paid.account, &id, self.clock.now()).await?;
        Ok(receipt.is_some_and(|receipt| receipt.amount == paid.amount))
    }

    /// Sends one Query request for each page of the refunds of the receipt.
    async fn has_refund(&self, refund: &RefundEventData, has_failed: bool) -> Result<bool, TableError> {
        let RefundEventData { due_on, subscription, sku, .. } = refund.clone();
        let refunds =
            self.table.get_refunds_by_receipt(&refund.account, &ReceiptId { due_on, subscription, sku }).await?;
        let is_it = |stored: &&Refund| stored.id.to_string() == refund.refund && stored.amount == refund.amount;
        Ok(refunds.iter().find(is_it).is_some_and(|stored| may_have_refund_event(stored, has_failed)))
    }
}

/// Returns whether an event about the failure of `refund`, if `has_failed`, or about its success can exist. A refund that has
/// failed may have succeeded before, and a refund that the gateway refused has no event.
fn may_have_refund_event(refund: &Refund, has_failed: bool) -> bool {
    match refund.status {
        RefundStatus::Pending => false,
        RefundStatus::Succeeded => !has_failed,
        RefundStatus::Failed => !refund.is_refused_by_gateway(),
    }
}
