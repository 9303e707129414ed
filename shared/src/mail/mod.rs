//! Mail: what is said, and how it leaves.

mod compose;
mod config;
mod language;
mod merchant;
mod message;
mod outbox;
mod ses;
mod smtp;
pub mod tags;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use aws_config::SdkConfig;
use chrono::{DateTime, Utc};

use crate::billing::{AccountId, EmailAddress};

pub use compose::{Matter, Occasion};
pub use config::*;
pub use language::{Labels, Language, ReceiptTexts, Texts};
pub use merchant::Merchant;
pub use outbox::Outbox;
pub use ses::Ses;
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

/// The mailer at `url`: `ses:` or `ses:?configuration-set=NAME` for Amazon SES as `sdk` reaches it, `smtp://` or `smtps://` for a
/// mail server, `outbox:FOLDER` for files in a folder. Nobody else asks for `sdk`.
///
/// # Errors
/// [`MailError`] if `url` or `from` is not one.
pub async fn mailer(url: &str, from: &str, sdk: impl Future<Output = SdkConfig>) -> Result<Arc<dyn Mailer>, MailError> {
    match url.split_once(':') {
        Some(("outbox", folder)) => Ok(Arc::new(Outbox::new(folder, from)?)),
        Some(("ses", _)) => Ok(Arc::new(Ses::new(url, from, &sdk.await)?)),
        _ => Ok(Arc::new(Smtp::new(url, from)?)),
    }
}
