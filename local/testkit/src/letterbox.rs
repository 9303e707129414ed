//! A mailer for tests.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use mail::{Mail, MailError, Mailer};

/// Keeps mails in memory.
#[derive(Debug, Default)]
pub struct Letterbox(Mutex<Vec<Mail>>);

impl Letterbox {
    /// All mails so far, in the order they were sent.
    pub fn mails(&self) -> Vec<Mail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Mailer for Letterbox {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(mail.clone());
        Ok(())
    }
}
