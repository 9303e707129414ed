//! Sends the notices (mails to customers about events) of the local system. Notices wait in a file until they are sent,
//! so that a slow or unreachable mail server does not delay anything else.

use std::io;
use std::time::Duration;

use billing::ReceivedEvent;
use notices::{NoticeError, Notices};

use super::event_file::EventFile;
use crate::terminal::output;

/// The time between two checks for waiting notices.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time until a failed notice is tried again.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(60);

/// Sends the notices of events to customers.
pub struct NoticeSender {
    notices: Notices,
    /// The events whose notices are not sent yet.
    pub waiting: EventFile,
}

impl NoticeSender {
    /// Creates a sender for the notices of the events in `waiting`.
    pub fn new(notices: Notices, waiting: EventFile) -> Self {
        Self { notices, waiting }
    }

    /// Appends the events that cause a notice to the file of the waiting events.
    ///
    /// # Errors
    /// If the file of the waiting events cannot be written.
    pub fn enqueue_events(&self, events: &[ReceivedEvent]) -> io::Result<()> {
        events
            .iter()
            .filter(|event| Notices::has_notice_for(event))
            .try_for_each(|event| self.waiting.append(&event.json))
    }

    /// Sends the waiting notices. If the mail service fails for one notice, this notice and all later notices wait for
    /// the next call. Returns the reason of the last failure; `None` if no notice failed.
    ///
    /// # Errors
    /// If the file of the waiting events cannot be used.
    pub async fn send(&self) -> io::Result<Option<String>> {
        let (mut failed, mut is_mailer_down) = (None, false);
        for event in self.waiting.start_retry()? {
            let sent = if is_mailer_down { None } else { Some(self.notify(&event).await) };
            if let Some(Ok(())) = sent {
                continue;
            }
            self.waiting.append(&event)?;
            if let Some(Err(error)) = sent {
                is_mailer_down = matches!(error, NoticeError::Mail(_));
                failed = Some(error.to_string());
            }
        }
        self.waiting.finish_retry()?;
        Ok(failed)
    }

    /// Sends the notice about one stored event.
    async fn notify(&self, event: &str) -> Result<(), NoticeError> {
        self.notices.notify(&ReceivedEvent::read(event)?).await?;
        Ok(())
    }

    /// Sends waiting notices until the future is dropped. Prints a message when the sending begins to fail, fails for
    /// another reason, or succeeds again.
    pub async fn send_continuously(&self) {
        let mut reported_error = None;
        loop {
            let failed = self.send().await.unwrap_or_else(|error| Some(error.to_string()));
            if reported_error != failed {
                output::print_message(match &failed {
                    Some(reason) => format!("error: mails cannot be sent: {reason}. They are tried again every minute"),
                    None => "The waiting mails have been sent.".to_owned(),
                });
            }
            tokio::time::sleep(if failed.is_some() { PAUSE_AFTER_ERROR } else { CHECK_INTERVAL }).await;
            reported_error = failed;
        }
    }
}
