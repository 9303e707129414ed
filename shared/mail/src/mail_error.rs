//! The error for a mail that could not be sent. It states whose fault the failure is, so that the fault of one recipient
//! never delays the mails to others.

/// The cause of a failed mail. Each response of a mail service is classified once, by the mailer that received it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MailFault {
    /// The address of the recipient accepts no mail. No later try with this address succeeds.
    RecipientPermanent,
    /// The mail service does not accept this mail to this recipient now, for example because the mailbox is full. A later
    /// try may succeed. Mails to other recipients are not affected.
    RecipientTransient,
    /// The mail service accepts no mails now, or did not respond. A later try may succeed.
    ServiceTransient,
    /// The mail service refuses the settings of the merchant, such as the sender or the password. No mail can be sent
    /// until a person has corrected the settings.
    Settings,
}

impl MailFault {
    /// Returns whether the failure concerns only the recipient of the mail, so that mails to others can be sent.
    pub fn concerns_only_recipient(self) -> bool {
        matches!(self, Self::RecipientPermanent | Self::RecipientTransient)
    }
}

/// The error for a mail that could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("the mail could not be sent: {reason}")]
pub struct MailError {
    /// The reason, with the response of the mail service. It does not contain the address of the recipient.
    pub reason: String,
    pub fault: MailFault,
}

impl MailError {
    /// Creates the error with this fault and this reason.
    pub fn new(fault: MailFault, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), fault }
    }
}
