//! Sends the notices (mails to customers about events) of the local system. Notices wait in a file until they are sent,
//! so that a slow or unreachable mail server does not delay anything else.

use std::io;
use std::time::Duration;

use billing::ReceivedEvent;
use notices::{CustomerNotifier, NOTICE_DELAYED, NoticeError};
use tokio::time::Instant;

use super::event_file::EventFile;
use crate::terminal::output;

/// The time between two checks for waiting notices.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time until a failed notice is tried again.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(60);
/// The time between two tries of the delayed notices, whose recipients did not accept them.
const DELAY_INTERVAL: Duration = Duration::from_secs(15 * 60);

/// Sends the notices of events to customers.
pub struct NoticeSender {
    notices: CustomerNotifier,
    /// The events whose notices are not sent yet.
    pub waiting: EventFile,
    /// The events whose notices were refused by their recipients for now. They are tried less often than the waiting
    /// notices, and delay no other notice.
    delayed: EventFile,
}

impl NoticeSender {
    /// Creates a sender for the notices of the events in `waiting` and `delayed`.
    pub fn new(notices: CustomerNotifier, waiting: EventFile, delayed: EventFile) -> Self {
        Self { notices, waiting, delayed }
    }

    /// Appends the events that cause a notice to the file of the waiting events.
    ///
    /// # Errors
    /// If the file of the waiting events cannot be written.
    pub fn enqueue_events(&self, events: &[ReceivedEvent]) -> io::Result<()> {
        let events = events.iter().filter(|event| CustomerNotifier::has_notice_for(event));
        self.waiting.append_all(events.map(|event| &*event.json))
    }

    /// Sends the waiting notices. Returns the reason of the last failure; `None` if no notice failed. A notice that its
    /// recipient does not accept now is no failure: it becomes a delayed notice.
    ///
    /// # Errors
    /// If a file of events cannot be used.
    pub async fn send_waiting(&self) -> io::Result<Option<String>> {
        self.send_notices_of_file(&self.waiting).await
    }

    /// Tries the delayed notices again. Returns the reason of the last failure, as [`NoticeSender::send_waiting`] does.
    ///
    /// # Errors
    /// If a file of events cannot be used.
    pub async fn retry_delayed(&self) -> io::Result<Option<String>> {
        self.send_notices_of_file(&self.delayed).await
    }

    /// Sends the notices in `file`. If the mail service fails for one notice, the notices that are not tried yet wait for
    /// the next call, and the failed notice waits behind them. So even a wrongly classified response to one recipient
    /// cannot keep the other notices from being sent.
    async fn send_notices_of_file(&self, file: &EventFile) -> io::Result<Option<String>> {
        let (mut untried, mut failed, mut delayed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut failure, mut is_mailer_down) = (None, false);
        for event in file.start_retry()? {
            if is_mailer_down {
                untried.push(event);
                continue;
            }
            match self.send_notice_of_event(&event).await {
                Ok(()) => {}
                Err(error) if error.concerns_only_recipient() => {
                    output::print_message(format!("{NOTICE_DELAYED}: {error}"));
                    delayed.push(event);
                }
                Err(error) => {
                    is_mailer_down = matches!(error, NoticeError::Mail(_));
                    failure = Some(error.to_string());
                    failed.push(event);
                }
            }
        }
        file.append_all(untried.iter().chain(&failed).map(String::as_str))?;
        self.delayed.append_all(delayed.iter().map(String::as_str))?;
        file.finish_retry()?;
        Ok(failure)
    }

    /// Sends the notice about one stored event.
    async fn send_notice_of_event(&self, event: &str) -> Result<(), NoticeError> {
        self.notices.notify(&ReceivedEvent::read(event)?).await?;
        Ok(())
    }

    /// Sends waiting notices until the future is dropped, and tries the delayed notices again from time to time. Prints a
    /// message when the sending begins to fail, fails for another reason, or succeeds again.
    pub async fn send_continuously(&self) {
        let (mut reported_error, mut next_retry_of_delayed) = (None, Instant::now());
        loop {
            let mut failed = self.send_waiting().await.unwrap_or_else(|error| Some(error.to_string()));
            if failed.is_none() && Instant::now() >= next_retry_of_delayed {
                failed = self.retry_delayed().await.unwrap_or_else(|error| Some(error.to_string()));
                next_retry_of_delayed = Instant::now() + DELAY_INTERVAL;
            }
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
