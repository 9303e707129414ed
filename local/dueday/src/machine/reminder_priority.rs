//! Lets the reminders of a daily run be sent before the events of earlier changes are published.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The longest pause of other work for the reminders. A slow mail server must not stop the events.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Whether the server is sending the reminders of a daily run, or is about to start. Publishing the events of a long
/// run takes minutes, so it pauses before each of its parts while reminders are sent.
#[derive(Clone, Debug)]
pub struct ReminderPriority(watch::Sender<bool>);

impl Default for ReminderPriority {
    /// Creates the state of a server that starts: its first daily run starts now.
    fn default() -> Self {
        Self(watch::Sender::new(true))
    }
}

impl ReminderPriority {
    /// Records that the server starts to send reminders.
    pub fn start_reminders(&self) {
        self.0.send_replace(true);
    }

    /// Records that all reminders of the daily run are sent.
    pub fn finish_reminders(&self) {
        self.0.send_replace(false);
    }

    /// Waits until no reminders are being sent, but at most [`MAX_PAUSE`].
    pub async fn pause_for_reminders(&self) {
        let mut is_sending = self.0.subscribe();
        // After the time-out, the other work continues with its next part.
        let _ = timeout(MAX_PAUSE, is_sending.wait_for(|is_sending| !is_sending)).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn other_work_pauses_while_reminders_are_sent_and_when_the_server_starts() {
        let priority = ReminderPriority::default();
        let is_pausing = || priority.pause_for_reminders().now_or_never().is_none();
        assert!(is_pausing(), "the first run of a server has not ended yet");
        priority.finish_reminders();
        assert!(!is_pausing());
        priority.start_reminders();
        assert!(is_pausing());
    }
}
