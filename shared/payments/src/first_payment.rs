//! What is known of the first payment of a subscription that was charged at sign-up.

use super::ChargeDue;
use billing::{AttemptEnd, Receipt, ReceiptId, Subscription};
use store::TableError;

/// A subscription and what is known of its first payment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignUp {
    pub subscription: Subscription,
    pub payment: FirstPayment,
}

/// The state of the first payment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FirstPayment {
    /// It was paid, and this is the receipt.
    Paid(Box<Receipt>),
    /// It was declined, for the reason that the code names.
    Declined { code: String },
    /// The gateway refused the request and made nothing; the code says why.
    Rejected { code: String },
    /// The bank is working on it; days may pass.
    Processing,
    /// It was begun, and its outcome is unknown until a run has looked it up.
    Unknown,
    /// Nothing was begun: a run will charge it.
    NotAttempted,
}

impl ChargeDue {
    /// Returns `subscription`, as stored now, with its first payment. `is_processing`: an open attempt is known to be processing, which
    /// the table does not say. GetItem of a receipt or of an attempt record, if there is one.
    ///
    /// # Errors
    /// [`TableError`]: the receipt or the record could not be read.
    pub async fn first_payment(&self, subscription: Subscription, is_processing: bool) -> Result<SignUp, TableError> {
        let Subscription { account, id, sku, first_due_on, attempt_seq, .. } = &subscription;
        if subscription.last_payment_at.is_some() {
            let receipt = ReceiptId { due_on: *first_due_on, subscription: *id, sku: sku.clone() };
            if let Some(receipt) = self.table.get_receipt(account, &receipt, self.clock.now()).await? {
                return Ok(SignUp { payment: FirstPayment::Paid(Box::new(receipt)), subscription });
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
        Ok(SignUp { subscription, payment })
    }
}
