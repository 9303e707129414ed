//! The outbox: a folder to which mails are written as `.eml` files, which any mail program can open.

use std::path::PathBuf;

use async_trait::async_trait;
use lettre::message::Mailbox;

use super::mail_encoding::{encode_mail, parse_sender, recipient_address};
use super::{Mail, MailError, MailFault, Mailer};

/// A mailer that writes each mail as a file into a folder. The file is renamed to its final name only when it is
/// complete, so a file with the extension `.eml` always contains a complete mail.
#[derive(Clone, Debug)]
pub struct Outbox {
    folder: PathBuf,
    from: Mailbox,
}

impl Outbox {
    /// Creates an outbox in `folder`, for mails from the sender `from`: an address, or a name and an address such as
    /// `Shop <billing@example.com>`. The folder is created with the first mail.
    ///
    /// # Errors
    /// Returns an error if `from` is not a valid sender.
    pub fn new(folder: impl Into<PathBuf>, from: &str) -> Result<Self, MailError> {
        Ok(Self { folder: folder.into(), from: parse_sender(from)? })
    }
}

#[async_trait]
impl Mailer for Outbox {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let bytes = encode_mail(mail, &self.from, recipient_address(&mail.to)?)?.formatted();
        let io = |error: std::io::Error| {
            MailError::new(MailFault::ServiceTransient, format!("{}: {error}", self.folder.display()))
        };
        tokio::fs::create_dir_all(&self.folder).await.map_err(io)?;
        let (draft, file) =
            (self.folder.join(format!("{}.part", mail.id)), self.folder.join(format!("{}.eml", mail.id)));
        tokio::fs::write(&draft, bytes).await.map_err(io)?;
        tokio::fs::rename(&draft, &file).await.map_err(io)
    }
}
