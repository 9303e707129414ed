//! The comparison of events about payments with the records of payments, so that a forged event changes no order.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use billing::RefundEventData;
use dynamo::TableError;

use crate::OrderDesk;
use crate::error::DeskError;
use orders::{OrderId, PaidPeriod, RefundEvent};

/// The records of payments and refunds, which the order desk reads before it believes an event.
#[async_trait]
pub trait PaymentLookup: fmt::Debug + Send + Sync {
    /// Returns whether the payment of `paid` has a receipt with the same account, SKU and amount.
    async fn has_receipt(&self, paid: &PaidPeriod) -> Result<bool, TableError>;

    /// Returns whether a refund with the same account, receipt, identifier and amount is recorded, and has succeeded or, if
    /// `has_failed`, failed.
    async fn has_refund(&self, refund: &RefundEventData, has_failed: bool) -> Result<bool, TableError>;
}

impl OrderDesk {
    /// Returns this order desk, which compares payments and refunds with `records` before it changes an order because of them. An
    /// order desk without records is for callers that have read the receipt or the refund themselves.
    pub fn with_payment_records(self, records: Arc<dyn PaymentLookup>) -> Self {
        Self { payment_records: Some(records), ..self }
    }

    /// Returns whether the payment of `paid` has a receipt.
    pub(crate) async fn has_receipt(&self, paid: &PaidPeriod) -> Result<bool, TableError> {
        match &self.payment_records {
            Some(records) => records.has_receipt(paid).await,
            None => Ok(true),
        }
    }

    /// Returns whether the refund of an event with the data `refund` is recorded in the payments table. A refund that the order
    /// desk has processed before may have expired there, so it is not compared again.
    pub(crate) async fn has_refund(&self, refund: &RefundEventData, has_failed: bool) -> Result<bool, DeskError> {
        let Some(records) = &self.payment_records else { return Ok(true) };
        if records.has_refund(refund, has_failed).await? {
            return Ok(true);
        }
        let order = OrderId::of_month(refund.due_on, refund.subscription);
        let event = RefundEvent::new(refund.clone(), has_failed);
        Ok(self.table.get_refunds(order).await?.is_some_and(|processed| processed.after_event(&event).is_none()))
    }
}
