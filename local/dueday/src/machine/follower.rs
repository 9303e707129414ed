//! Publishes the changes in the streams of the payments table and the orders table as events, like the events function
//! on AWS. The local system and the events function use the same [`Publisher`], but the event bus of the local system
//! is a [`LocalBus`].

use std::sync::Arc;
use std::time::Duration;

use emulator::TableStream;
use publishing::Publisher;
use tokio::sync::watch;

use super::journal::{EventJournal, PublishedTable};
use super::local_bus::LocalBus;
use super::notice_sender::NoticeSender;
use super::reminder_priority::ReminderPriority;
use crate::Failure;
use crate::terminal::output;

/// The largest number of stream records that are read and published at once.
const MAX_STREAM_RECORDS: usize = 500;
/// The time between two reads of the streams.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The pause before the next attempt after an error.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(5);

/// The streams of the tables of a data folder.
#[derive(Clone)]
pub struct PublishedStreams {
    pub payments: TableStream,
    pub orders: TableStream,
}

impl PublishedStreams {
    /// Returns each table with its stream. The payments table comes first, because its events place orders.
    pub fn streams_by_table(&self) -> [(PublishedTable, &TableStream); 2] {
        [(PublishedTable::Payments, &self.payments), (PublishedTable::Orders, &self.orders)]
    }
}

/// Publishes the changes in the streams of the data folder's tables as events.
pub struct StreamFollower {
    streams: PublishedStreams,
    journal: Arc<EventJournal>,
    /// Sends notices to customers.
    pub notice_sender: Arc<NoticeSender>,
    publisher: Publisher<LocalBus>,
    /// The reminders of the server, which come first; `None` if this process runs no server.
    reminder_priority: Option<ReminderPriority>,
    /// Becomes true when all changes that were in the streams at the start of this process are published as events.
    has_caught_up: watch::Sender<bool>,
}

impl StreamFollower {
    /// Creates a follower that publishes the changes in `streams` on `bus`.
    pub fn new(streams: PublishedStreams, bus: LocalBus) -> Self {
        let (journal, notice_sender) = (bus.journal.clone(), bus.notice_sender.clone());
        Self {
            streams,
            journal,
            notice_sender,
            publisher: Publisher::new(bus),
            reminder_priority: None,
            has_caught_up: watch::Sender::new(false),
        }
    }

    /// Makes the follower pause before each batch of records while the server sends reminders.
    pub fn with_reminder_priority(self, priority: ReminderPriority) -> Self {
        Self { reminder_priority: Some(priority), ..self }
    }

    /// Returns a receiver whose value becomes true when all changes that were in the streams at the start of this process
    /// are published as events.
    pub fn first_publication(&self) -> watch::Receiver<bool> {
        self.has_caught_up.subscribe()
    }

    /// Publishes all changes that are in the streams now.
    ///
    /// # Errors
    /// If a stream cannot be read, or the events cannot be stored. Records that were not published stay in the stream.
    pub async fn publish_all_changes(&self) -> Result<(), Failure> {
        for (table, stream) in self.streams.streams_by_table() {
            self.publish_changes(table, stream).await?;
        }
        Ok(())
    }

    /// Publishes all changes that are in the `stream` of `table` now.
    async fn publish_changes(&self, table: PublishedTable, stream: &TableStream) -> Result<(), Failure> {
        let journal = &self.journal;
        loop {
            let batch =
                stream.records_after(journal.committed_position(table).sequence.as_deref(), MAX_STREAM_RECORDS)?;
            let last = batch["Records"].as_array().and_then(|records| records.last());
            let Some(last) = last.and_then(|record| record["dynamodb"]["SequenceNumber"].as_str()) else {
                return Ok(());
            };
            if let Some(priority) = &self.reminder_priority {
                // The requests to the embedded engine do not wait, so the other work of the server would not continue
                // before all records are published.
                tokio::task::yield_now().await;
                priority.pause_for_reminders().await;
            }
            let published = self.publisher.publish(&batch).await;
            let published = published.map_err(|error| Failure::EventsNotStored { reason: error.to_string() })?;
            if let Some(refused) = published.failure_reason {
                return Err(Failure::EventsNotStored { reason: refused });
            }
            if published.unreadable > 0 {
                output::print_message(
                    "error: a change of the table cannot be read; `dueday events --type record.unreadable` shows it",
                );
            }
            journal
                .commit(table, stream.arn(), last)
                .map_err(|error| Failure::EventsNotStored { reason: error.to_string() })?;
            // The engine stores stream records until they are trimmed. Without this call, the engine's file would grow
            // with every write.
            stream.delete_records_until(last)?;
        }
    }

    /// Publishes changes until the future is dropped. If the same error occurs repeatedly, it is printed only once.
    pub async fn publish_continuously(&self) {
        let mut reported_error = None;
        loop {
            match self.publish_all_changes().await {
                Ok(()) => {
                    reported_error = None;
                    self.has_caught_up.send_replace(true);
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                Err(error) => {
                    let text = error.message();
                    if reported_error.as_ref() != Some(&text) {
                        output::print_message(format!("error: {text}"));
                    }
                    reported_error = Some(text);
                    tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                }
            }
        }
    }
}
