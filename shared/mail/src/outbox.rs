//! The outbox: a folder of `.eml` files that any mail program opens.

use std::path::PathBuf;

use async_trait::async_trait;
use lettre::message::Mailbox;

use super::message::{encode, sender};
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
        Ok(Self { folder: folder.into(), from: sender(from)? })
    }
}

#[async_trait]
impl Mailer for Outbox {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let bytes = encode(mail, &self.from)?.formatted();
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
