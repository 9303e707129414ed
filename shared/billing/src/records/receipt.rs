//! The receipt of a successful payment.

use chrono::{DateTime, NaiveDate, Utc};

use crate::records::dispute::{Dispute, DisputeStatus};
use crate::records::receipt_id::ReceiptId;
use crate::records::receipt_number::ReceiptNumber;
use crate::values::calendar::Period;
use crate::values::card::Card;
use crate::values::contact_data::{EmailAddress, Label};
use crate::values::ids::{AccountId, GatewayToken, Sku, SubscriptionId};
use crate::values::money::Money;

/// The receipt of the successful payment of one due date. Receipts are deleted when they expire, so the protection
/// against a second charge must not depend on receipts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub sku: Sku,
    pub product_name: Label,
    /// The subscription's own address for mails; absent if mails are sent to the address of the account.
    pub email: Option<EmailAddress>,
    pub due_on: NaiveDate,
    pub amount: Money,
    /// The gateway's id of the payment.
    pub payment: GatewayToken,
    /// The gateway's token of the charged customer; absent from a receipt that an earlier version of Dueday wrote.
    pub customer: Option<GatewayToken>,
    /// The charged card, if the gateway returned its description.
    pub card: Option<Card>,
    pub processed_at: DateTime<Utc>,
    /// The refunded amount, including pending refunds.
    pub refunded: Money,
    /// When the latest refund was requested; `None` if there is no refund, or if an earlier version of Dueday stored
    /// the refund.
    pub refunded_at: Option<DateTime<Utc>>,
    /// The reversal of the payment by the bank; `None` if the bank has not reversed the payment.
    pub reversal: Option<Reversal>,
}

/// The reversal of a successful payment, or of a part of it, by the bank. The period still counts as paid and is not
/// charged again; a person must decide whether to collect the money.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reversal {
    /// When the gateway reported the reversal.
    pub at: DateTime<Utc>,
    pub amount: Money,
}

impl Receipt {
    /// Returns the amount that the merchant keeps: the paid amount minus the refunds and minus the amount that the bank
    /// reversed. The result is negative if the customer got more back than the paid amount, for example because the bank
    /// reversed an amount that was already refunded.
    pub fn net_amount(&self) -> Money {
        let reversed = self.reversal.map_or(0, |reversal| reversal.amount.minor());
        let kept = self.amount.minor().saturating_sub(self.refunded.minor()).saturating_sub(reversed);
        Money::new(kept, self.amount.currency())
    }

    /// Computes the reversal of the payment. `disputes` are all disputes of the account. Returns `None` if the bank did
    /// not reverse the payment.
    pub fn reversal_from(&self, disputes: &[Dispute]) -> Option<Reversal> {
        let reverses_payment = |dispute: &&Dispute| dispute.payment == self.payment && dispute.status.is_reversal();
        let reversals: Vec<&Dispute> = disputes.iter().filter(reverses_payment).collect();
        let at = reversals.iter().map(|dispute| dispute.closed_at.unwrap_or(dispute.opened_at)).min()?;
        Some(Reversal { at, amount: self.disputed_sum(&reversals) })
    }

    /// Returns the part of the payment that the bank may still reverse: the amount of its open disputes. `disputes` are
    /// all disputes of the account. An inquiry does not count, because the bank reverses nothing on account of an
    /// inquiry.
    pub fn disputed_amount(&self, disputes: &[Dispute]) -> Money {
        let is_open = |dispute: &&Dispute| dispute.payment == self.payment && dispute.status == DisputeStatus::Open;
        self.disputed_sum(&disputes.iter().filter(is_open).collect::<Vec<_>>())
    }

    /// Returns the sum of the amounts of `disputes`, which are disputes of this payment; at most the paid amount.
    fn disputed_sum(&self, disputes: &[&Dispute]) -> Money {
        // If a dispute has another currency, the disputed part is unknown: assume that the whole payment is disputed.
        let none = Money::new(0, self.amount.currency());
        let sum = disputes.iter().try_fold(none, |sum, dispute| sum.checked_add(dispute.amount));
        sum.ok().filter(|sum| sum.minor() < self.amount.minor()).unwrap_or(self.amount)
    }

    /// Returns the period (the month) that the receipt is for.
    pub fn period(&self) -> Period {
        Period::from_day(self.due_on)
    }

    /// Returns the id of the receipt.
    pub fn id(&self) -> ReceiptId {
        ReceiptId { due_on: self.due_on, subscription: self.subscription, sku: self.sku.clone() }
    }

    /// Returns the number of the receipt, which people read and type.
    pub fn number(&self) -> ReceiptNumber {
        ReceiptNumber::new(&self.account, self.subscription, self.due_on)
    }
}
