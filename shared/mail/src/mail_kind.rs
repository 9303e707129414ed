//! [`MailKind`]: the reason why a customer receives a mail.

use strum::{Display, EnumIter};

/// The kind of a mail: the reason why the customer receives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, EnumIter)]
#[strum(serialize_all = "kebab-case")]
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
    /// The subscription has ended.
    Ended,
}
