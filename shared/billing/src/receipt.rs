//! The receipt of a successful payment.

use chrono::{DateTime, NaiveDate, Utc};
use sha2::{Digest as _, Sha256};

use super::{AccountId, Card, Dispute, EmailAddress, GatewayToken, Label, Money, ReceiptId, Sku, SubscriptionId};

/// Proof of one successful payment of one due date. It expires: it is never what protects from charging twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub sku: Sku,
    pub product_name: Label,
    /// The subscription's own address; absent when its mail goes to the account's.
    pub email: Option<EmailAddress>,
    pub due_on: NaiveDate,
    pub amount: Money,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
    /// The gateway's customer who was charged; absent of receipts of earlier versions.
    pub customer: Option<GatewayToken>,
    /// The card that was charged, where the gateway says so.
    pub card: Option<Card>,
    pub processed_at: DateTime<Utc>,
    /// What of it was given back, or is being.
    pub refunded: Money,
    /// Set if the bank took the payment back.
    pub reversal: Option<Reversal>,
}

/// A payment, or a part of it, that the bank took back after it had succeeded. The period stays paid for the batch: collecting
/// the money is a person's decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reversal {
    /// When we learned of it.
    pub at: DateTime<Utc>,
    pub amount: Money,
}

impl Receipt {
    /// The reversal of its payment by `disputes`, those of its account.
    pub fn reversed_by(&self, disputes: &[Dispute]) -> Option<Reversal> {
        let is_its = |dispute: &&Dispute| dispute.payment == self.payment && dispute.status.is_reversal();
        let reversals: Vec<&Dispute> = disputes.iter().filter(is_its).collect();
        let at = reversals.iter().map(|dispute| dispute.closed_at.unwrap_or(dispute.opened_at)).min()?;
        // An amount in another currency says nothing about the part: then it is the whole.
        let none = Money::new(0, self.amount.currency());
        let sum = reversals.iter().try_fold(none, |sum, dispute| sum.checked_add(dispute.amount));
        let amount = sum.ok().filter(|sum| sum.minor() < self.amount.minor()).unwrap_or(self.amount);
        Some(Reversal { at, amount })
    }

    /// What it is known by.
    pub fn id(&self) -> ReceiptId {
        ReceiptId { due_on: self.due_on, subscription: self.subscription, sku: self.sku.clone() }
    }

    /// A number that a person can read out, as `202603-7KQ2-9M4T`: the month, and letters and digits that none can be taken for
    /// another of (Crockford's base 32), made of the receipt's id and account.
    pub fn number(&self) -> String {
        const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let digest = Sha256::digest(format!("{}\n{}", self.account, self.id()));
        let letter = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]);
        let letters: String = digest.iter().take(8).map(letter).collect();
        let (first, second) = letters.split_at(4);
        format!("{}-{first}-{second}", self.due_on.format("%Y%m"))
    }
}
