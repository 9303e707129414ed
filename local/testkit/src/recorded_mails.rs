//! A mailer that records mails in memory.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use mail::{Mail, MailError, Mailer};

/// A mailer that only records the mails.
#[derive(Debug, Default)]
pub struct RecordedMails(Mutex<Vec<Mail>>);

impl RecordedMails {
    /// Returns all recorded mails, in the order in which they were sent.
    pub fn mails(&self) -> Vec<Mail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Mailer for RecordedMails {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(mail.clone());
        Ok(())
    }
}
