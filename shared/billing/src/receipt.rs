//! The receipt of a successful payment.

use chrono::{DateTime, NaiveDate, Utc};
use sha2::{Digest as _, Sha256};

use super::{AccountId, Card, Dispute, EmailAddress, GatewayToken, Label, Money, ReceiptId, Sku, SubscriptionId};

/// The receipt of the successful payment of one due date. Receipts expire, so the protection against a second charge
/// must not depend on them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub sku: Sku,
    pub product_name: Label,
    /// The address of the subscription for mails; absent if its mails are sent to the address of the account.
    pub email: Option<EmailAddress>,
    pub due_on: NaiveDate,
    pub amount: Money,
    /// The gateway's id of the payment.
    pub payment: GatewayToken,
    /// The gateway's token of the charged customer; absent from receipts of earlier versions.
    pub customer: Option<GatewayToken>,
    /// The charged card, if the gateway returned its description.
    pub card: Option<Card>,
    pub processed_at: DateTime<Utc>,
    /// The refunded amount, including pending refunds.
    pub refunded: Money,
    /// The reversal by the bank, if there is one.
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
    /// Computes the reversal of the payment from `disputes`, all disputes of the account; `None` if the bank did not
    /// reverse it.
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

    /// Returns a short number that a person can read aloud, such as `202603-7KQ2-9M4T`. It consists of the month and
    /// eight characters of a hash of the account and the receipt id, in Crockford's base 32, which has no similar
    /// characters.
    pub fn number(&self) -> String {
        const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let digest = Sha256::digest(format!("{}\n{}", self.account, self.id()));
        let letter = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]);
        let letters: String = digest.iter().take(8).map(letter).collect();
        let (first, second) = letters.split_at(4);
        format!("{}-{first}-{second}", self.due_on.format("%Y%m"))
    }
}
