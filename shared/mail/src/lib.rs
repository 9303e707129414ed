//! Composes and sends mails to customers.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod compose;
mod config;
mod connection_pool;
mod country_names;
mod language;
mod login;
mod mail_encoding;
mod mail_error;
mod mail_kind;
mod mail_server;
mod mail_settings;
mod merchant;
mod outbox;
mod outlook_text;
mod recipient_redaction;
mod smtp;
mod smtp_response;
pub mod tags;
mod variables;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use billing::{AccountId, EmailAddress};

pub use compose::MailFacts;
pub use language::{CardReturnTexts, LabelTexts, Language, LanguageTexts, OutlookTexts, ReceiptTexts};
pub use login::{SmtpLogin, parse_smtp_login};
pub use mail_encoding::{encode_mail, is_same_mailbox, parse_sender, recipient_address};
pub use mail_error::{MailError, MailFault};
pub use mail_kind::MailKind;
pub use merchant::Merchant;
pub use outbox::Outbox;
pub use smtp::SmtpMailer;
pub use variables::*;

/// A complete mail, with the same content as plain text and as HTML.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// The unique identifier of the mail, in the outbox and at the mail service.
    pub id: String,
    pub kind: MailKind,
    pub account: AccountId,
    pub to: EmailAddress,
    /// The name of the merchant, for a sender without a name of its own.
    pub sender_name: String,
    /// The address for replies; `None` if replies go to the sender.
    pub reply_to: Option<EmailAddress>,
    /// The address for requests to unsubscribe from mails of this kind; `None` if customers cannot unsubscribe from
    /// mails of this kind.
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

/// A service that sends mails.
#[async_trait]
pub trait Mailer: Send + Sync + fmt::Debug {
    /// Sends `mail`. On success, the mail service has accepted the mail.
    ///
    /// # Errors
    /// Returns an error if the mail service rejected the mail or did not respond; its [`MailFault`] states whose fault
    /// this is. After [`MailFault::ServiceTransient`], the mail was usually not sent. But if only the response of the mail
    /// service was lost, the mail was sent.
    async fn send(&self, mail: &Mail) -> Result<(), MailError>;
}

/// Creates the mailer for `url`: a URL that begins with `smtp://` or `smtps://` for a mail server, or `outbox:FOLDER`
/// for files in a folder. The URL `ses:` is refused here, because only the Lambda functions can use it: they create
/// their mailer with the crate `ses`.
///
/// # Errors
/// Returns an error if `url` is not a valid mailer URL or `from` is not a valid sender.
pub fn create_mailer(url: &str, from: &str) -> Result<Arc<dyn Mailer>, MailError> {
    match url.split_once(':') {
        Some(("outbox", folder)) => Ok(Arc::new(Outbox::new(folder, from)?)),
        Some(("ses", _)) => Err(MailError::new(
            MailFault::Settings,
            "ses: works only in the functions on AWS; use the SMTP interface of Amazon SES here: \
             smtps://USER:PASSWORD@email-smtp.REGION.amazonaws.com:465",
        )),
        _ => Ok(Arc::new(SmtpMailer::new(url, from)?)),
    }
}
