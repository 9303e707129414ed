//! The state of the payment that is charged at sign-up: the first payment of a subscription.

use crate::ChargingEngine;
use billing::{AttemptEnd, Receipt, ReceiptId, Subscription};
use store::TableError;

/// A subscription with the state of its first payment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubscriptionWithFirstPayment {
    pub subscription: Subscription,
    pub payment: FirstPayment,
}

/// The state of a subscription's first payment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FirstPayment {
    /// The payment succeeded. Contains its receipt.
    Paid(Box<Receipt>),
    /// The gateway declined the payment, for the reason `code`.
    Declined { code: String },
    /// The gateway rejected the request and made no payment, for the reason `code`.
    Rejected { code: String },
    /// The bank is processing the payment, which can take days.
    Processing,
    /// The outcome of the charge is unknown until a run has looked it up.
    Unknown,
    /// No attempt was made to charge the payment yet: a run will charge it.
    NotAttempted,
}

impl ChargingEngine {
    /// Returns `subscription`, as it was read from the table, with the state of its first payment. `is_processing` is
    /// true if the caller knows that the bank is processing the open attempt; the table does not store this state.
    /// Sends GetItem requests for the receipt and the attempt record, if they may exist.
    ///
    /// # Errors
    /// [`TableError`] if the receipt or the attempt record could not be read.
    pub async fn read_first_payment_state(
        &self,
        subscription: Subscription,
        is_processing: bool,
    ) -> Result<SubscriptionWithFirstPayment, TableError> {
        let Subscription { account, id, sku, first_due_on, attempt_seq, .. } = &subscription;
        if subscription.last_payment_at.is_some() {
            let receipt = ReceiptId { due_on: *first_due_on, subscription: *id, sku: sku.clone() };
            if let Some(receipt) = self.table.get_receipt(account, &receipt, self.clock.now()).await? {
                return Ok(SubscriptionWithFirstPayment {
                    payment: FirstPayment::Paid(Box::new(receipt)),
                    subscription,
                });
            }
        }
        let payment = match (&subscription.attempt, *attempt_seq) {
            (Some(_), _) if is_processing => FirstPayment::Processing,
            (Some(_), _) => FirstPayment::Unknown,
            (None, 0) => FirstPayment::NotAttempted,
            (None, no) => match self.table.get_attempt_record(account, *id, *first_due_on, no).await? {
                None => FirstPayment::Unknown,
                Some(record) => match record.outcome {
                    AttemptEnd::Declined => FirstPayment::Declined { code: record.code },
                    AttemptEnd::Rejected => FirstPayment::Rejected { code: record.code },
                    AttemptEnd::Dropped => FirstPayment::NotAttempted,
                },
            },
        };
        Ok(SubscriptionWithFirstPayment { subscription, payment })
    }
}
