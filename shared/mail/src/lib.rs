//! Mail: what is said, and how it leaves.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod compose;
mod config;
mod language;
mod merchant;
mod message;
mod occasion;
mod outbox;
mod smtp;
pub mod tags;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use billing::{AccountId, EmailAddress};

pub use compose::MailFacts;
pub use config::*;
pub use language::{Labels, Language, ReceiptTexts, Texts};
pub use merchant::Merchant;
pub use message::{encode, sender};
pub use occasion::Occasion;
pub use outbox::Outbox;
pub use smtp::Smtp;

/// A mail ready to leave: text and HTML say the same.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// Names it in the outbox and to the mail service; unique.
    pub id: String,
    pub occasion: Occasion,
    pub account: AccountId,
    pub to: EmailAddress,
    /// Where an answer goes, if not to the sender.
    pub reply_to: Option<EmailAddress>,
    /// Whom to tell that no more of its kind are wanted.
    pub unsubscribe_at: Option<EmailAddress>,
    pub subject: String,
    pub text: String,
    pub html: String,
    pub written_at: DateTime<Utc>,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why a mail did not leave.
#[derive(Debug, thiserror::Error)]
#[error("the mail could not be sent: {reason}")]
pub struct MailError {
    pub reason: String,
    /// Whether the same mail may leave later.
    pub is_transient: bool,
}

/// A way for mail to leave.
#[async_trait]
pub trait Mailer: Send + Sync + fmt::Debug {
    /// Sends `mail`. Once this returns, it has left.
    ///
    /// # Errors
    /// [`MailError`]. If it is transient, the mail has most likely not left; it may have, if only the answer was lost.
    async fn send(&self, mail: &Mail) -> Result<(), MailError>;
}

/// The mailer at `url`: `smtp://` or `smtps://` for a mail server, `outbox:FOLDER` for files in a folder. The functions have
/// `ses:` beside these.
///
/// # Errors
/// [`MailError`] if `url` or `from` is not one.
pub fn mailer(url: &str, from: &str) -> Result<Arc<dyn Mailer>, MailError> {
    match url.split_once(':') {
        Some(("outbox", folder)) => Ok(Arc::new(Outbox::new(folder, from)?)),
        Some(("ses", _)) => Err(MailError {
            reason: "ses: is for the functions on AWS; from here Amazon SES takes mail as a mail server does: \
                     smtps://USER:PASSWORD@email-smtp.REGION.amazonaws.com:465"
                .to_owned(),
            is_transient: false,
        }),
        _ => Ok(Arc::new(Smtp::new(url, from)?)),
    }
}
