//! Notices to customers on one machine. They wait in a file until they are sent, so that a mail server that is slow or away keeps
//! nothing else waiting.

use std::io;
use std::time::Duration;

use billing::ReceivedEvent;
use delivery::{NoticeError, Notices};

use super::set_aside::SetAside;
use crate::terminal::output;

/// New ones are looked for this often.
const INTERVAL: Duration = Duration::from_secs(1);
/// What could not be sent is tried again after this.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(60);

/// Sends notices to customers.
pub struct Post {
    notices: Notices,
    /// The events whose notices are not sent yet.
    pub waiting: SetAside,
}

impl Post {
    /// Sends the notices of the events that are `waiting`.
    pub fn new(notices: Notices, waiting: SetAside) -> Self {
        Self { notices, waiting }
    }

    /// Puts those of `events` that have a notice among the waiting ones.
    ///
    /// # Errors
    /// Their file cannot be used.
    pub fn put(&self, events: &[ReceivedEvent]) -> io::Result<()> {
        events.iter().filter(|event| Notices::are_sent_for(event)).try_for_each(|event| self.waiting.put(&event.json))
    }

    /// Sends the waiting notices, up to the first mail that cannot leave: it waits on, and all after it. Returns the reason.
    ///
    /// # Errors
    /// Their file cannot be used.
    pub async fn send(&self) -> io::Result<Option<String>> {
        let (mut failed, mut is_away) = (None, false);
        for event in self.waiting.again()? {
            let sent = if is_away { None } else { Some(self.notify(&event).await) };
            if let Some(Ok(())) = sent {
                continue;
            }
            self.waiting.put(&event)?;
            if let Some(Err(error)) = sent {
                is_away = matches!(error, NoticeError::Mail(_));
                failed = Some(error.to_string());
            }
        }
        self.waiting.done()?;
        Ok(failed)
    }

    async fn notify(&self, event: &str) -> Result<(), NoticeError> {
        self.notices.notify(&ReceivedEvent::read(event)?).await?;
        Ok(())
    }

    /// Sends the waiting notices, for as long as the future is not dropped.
    pub async fn keep_sending(&self) {
        let mut said = None;
        loop {
            let failed = self.send().await.unwrap_or_else(|error| Some(error.to_string()));
            tokio::time::sleep(if failed.is_some() { PAUSE_AFTER_ERROR } else { INTERVAL }).await;
            if said != failed {
                output::tell(match &failed {
                    Some(reason) => format!("error: mails wait: {reason}. They are tried again each minute"),
                    None => "The mails that waited have left.".to_owned(),
                });
            }
            said = failed;
        }
    }
}
