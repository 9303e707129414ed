//! [`MailKind`]: the reason why a customer receives a mail.

use serde::Deserialize;
use strum::{Display, EnumIter, EnumString};

/// The kind of a mail: the reason why the customer receives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display, EnumIter, EnumString, Deserialize)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "snake_case")]
pub enum MailKind {
    /// A payment will be due soon.
    Upcoming,
    /// A payment succeeded. The mail contains the receipt.
    Paid,
    /// A payment was refunded, in full or in part.
    Refunded,
    /// A payment was declined and will be retried.
    Failed,
    /// A payment was declined because the bank requires the customer to confirm the card.
    CardNeeded,
    /// A payment was declined and will not be retried.
    Unpaid,
    /// The customer has subscribed.
    SignedUp,
    /// The price or the payment day changes.
    TermsChanged,
    /// The subscription is paused.
    Paused,
    /// The subscription is charged again after a pause.
    Resumed,
    /// The subscription will be cancelled on a later date.
    CancellationPlanned,
    /// A planned cancellation was undone.
    CancellationUndone,
    /// The customer has given a new payment method.
    CardSaved,
    /// The subscription has ended.
    Ended,
    /// The subscription has ended because a payment was not made.
    EndedUnpaid,
    /// The products of a paid month were shipped.
    Shipped,
}

impl MailKind {
    /// Returns whether the amount in mails of this kind is the amount of one payment. In mails of the other kinds, the
    /// amount is the monthly price of the subscription.
    pub fn is_about_a_payment(self) -> bool {
        matches!(
            self,
            Self::Upcoming
                | Self::Paid
                | Self::Refunded
                | Self::Failed
                | Self::CardNeeded
                | Self::Unpaid
                | Self::EndedUnpaid
        )
    }

    /// Returns whether the merchant may switch off mails of this kind. Reminders and mails about failed payments cannot
    /// be switched off: the customer must get them, from Dueday or from another system.
    pub fn may_be_switched_off(self) -> bool {
        !matches!(self, Self::Upcoming | Self::Failed | Self::CardNeeded | Self::Unpaid | Self::EndedUnpaid)
    }
}
