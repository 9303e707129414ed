//! The receipt of a successful payment.

use chrono::{DateTime, NaiveDate, Utc};

use super::{
    AccountId, Card, Dispute, EmailAddress, GatewayToken, Label, Money, ReceiptId, ReceiptNumber, Sku, SubscriptionId,
};

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
    /// reversed. The result is never negative, even if the bank reversed an amount that was already refunded.
    pub fn net(&self) -> Money {
        let returned =
            self.reversal.map_or(0, |reversal| reversal.amount.minor()).saturating_add(self.refunded.minor());
        Money::new(self.amount.minor().saturating_sub(returned).max(0), self.amount.currency())
    }

    /// Computes the reversal of the payment. `disputes` are all disputes of the account. Returns `None` if the bank did
    /// not reverse the payment.
    pub fn reversal_from(&self, disputes: &[Dispute]) -> Option<Reversal> {
        let reverses_payment = |dispute: &&Dispute| dispute.payment == self.payment && dispute.status.is_reversal();
        let reversals: Vec<&Dispute> = disputes.iter().filter(reverses_payment).collect();
        let at = reversals.iter().map(|dispute| dispute.closed_at.unwrap_or(dispute.opened_at)).min()?;
        // If a dispute has another currency, the reversed part is unknown: assume that the whole payment was reversed.
        let none = Money::new(0, self.amount.currency());
        let sum = reversals.iter().try_fold(none, |sum, dispute| sum.checked_add(dispute.amount));
        let amount = sum.ok().filter(|sum| sum.minor() < self.amount.minor()).unwrap_or(self.amount);
        Some(Reversal { at, amount })
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
