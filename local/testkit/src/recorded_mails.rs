//! A mailer that records mails in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use mail::{Mail, MailError, MailFault, Mailer};

/// A mailer that only records the mails. Tests can make it refuse the mails to single addresses.
#[derive(Debug, Default)]
pub struct RecordedMails {
    mails: Mutex<Vec<Mail>>,
    /// The faults of the refused addresses.
    faults: Mutex<HashMap<String, MailFault>>,
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RecordedMails {
    /// Returns all recorded mails, in the order in which they were sent.
    pub fn mails(&self) -> Vec<Mail> {
        lock_mutex(&self.mails).clone()
    }

    /// Makes the mailer refuse all mails to `address` with `fault`; accepts them again if `fault` is `None`.
    pub fn refuse_mails_to(&self, address: &str, fault: impl Into<Option<MailFault>>) {
        match fault.into() {
            Some(fault) => lock_mutex(&self.faults).insert(address.to_owned(), fault),
            None => lock_mutex(&self.faults).remove(address),
        };
    }
}

#[async_trait]
impl Mailer for RecordedMails {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        if let Some(fault) = lock_mutex(&self.faults).get(mail.to.as_str()) {
            return Err(MailError::new(*fault, "refused"));
        }
        lock_mutex(&self.mails).push(mail.clone());
        Ok(())
    }
}
