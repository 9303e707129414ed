//! The occasions of mails.

use strum::{Display, EnumIter};

/// Why a mail is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Occasion {
    /// A payment is coming up.
    Upcoming,
    /// It was paid: the receipt.
    Paid,
    /// A payment was declined, and is tried again.
    Failed,
    /// The bank wants the customer to confirm the card.
    CardNeeded,
    /// A payment was declined, and is not tried again.
    Unpaid,
    /// The subscription has ended.
    Ended,
}
