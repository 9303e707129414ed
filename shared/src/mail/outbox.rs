//! The outbox: a folder of `.eml` files that any mail program opens.

use std::path::PathBuf;
use std::time::SystemTime;

use async_trait::async_trait;
use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};

use super::{Mail, MailError, Mailer};

/// Mails as files in a folder, each complete or absent.
#[derive(Clone, Debug)]
pub struct Outbox {
    folder: PathBuf,
    from: Mailbox,
}

impl Outbox {
    /// The outbox in `folder` (made when the first mail is written), for mails from `from`: an address, or a name and
    /// an address as `Shop <billing@example.com>`.
    ///
    /// # Errors
    /// [`MailError`] if `from` is not an address.
    pub fn new(folder: impl Into<PathBuf>, from: &str) -> Result<Self, MailError> {
        let from =
            from.parse().map_err(|_| permanent("the sender must be an address, or a name and an address in <>"))?;
        Ok(Self { folder: folder.into(), from })
    }
}

#[async_trait]
impl Mailer for Outbox {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let bytes = encode(mail, &self.from)?;
        let io = |error: std::io::Error| MailError {
            reason: format!("{}: {error}", self.folder.display()),
            is_transient: true,
        };
        tokio::fs::create_dir_all(&self.folder).await.map_err(io)?;
        let (draft, file) =
            (self.folder.join(format!("{}.part", mail.id)), self.folder.join(format!("{}.eml", mail.id)));
        tokio::fs::write(&draft, bytes).await.map_err(io)?;
        tokio::fs::rename(&draft, &file).await.map_err(io)
    }
}

/// The mail in the Internet message format (RFC 5322), as text and as HTML.
fn encode(mail: &Mail, from: &Mailbox) -> Result<Vec<u8>, MailError> {
    let to = mail.to.as_str().parse().map_err(|_| permanent("the recipient's address cannot be written in a mail"))?;
    let message = Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to))
        .subject(&mail.subject)
        .date(SystemTime::from(mail.written_at))
        .message_id(Some(format!("<{}@{}>", mail.id, from.email.domain())))
        .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()))
        .multipart(MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone()))
        .map_err(|error| permanent(&error.to_string()))?;
    Ok(message.formatted())
}

fn permanent(reason: &str) -> MailError {
    MailError { reason: reason.to_owned(), is_transient: false }
}
