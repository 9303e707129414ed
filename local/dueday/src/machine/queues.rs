//! The queues of the local system. They have the names of the queues on AWS, but their messages are in the table and in
//! files of the data folder.

use api::{QueueState, Queues};
use async_trait::async_trait;
use billing::DeliveryStatus;
use chrono::DateTime;
use store::{Paging, Table, TableError};

use super::data_folder::{delayed_mails_file, unmailed_events_file, unplaced_orders_file};
use super::event_file::EventFile;
use crate::options::Options;

/// The queues of the local system. `NoticesDelayed` exists only here: on AWS, delayed notices stay in the queue `Notices`.
#[derive(Clone, Debug)]
pub struct LocalQueues {
    table: Table,
    /// The events whose mails are not sent yet.
    unmailed_events: EventFile,
    /// The events whose mails are delayed, because their recipients did not accept them.
    delayed_mails: EventFile,
    /// The events of payments whose order could not be placed.
    unplaced_orders: EventFile,
}

impl LocalQueues {
    /// Creates a reader of the queues. `options` select the data folder, and `table` is its payments table.
    pub fn new(table: Table, options: &Options) -> Self {
        Self {
            table,
            unmailed_events: EventFile::new(unmailed_events_file(options)),
            delayed_mails: EventFile::new(delayed_mails_file(options)),
            unplaced_orders: EventFile::new(unplaced_orders_file(options)),
        }
    }

    /// Returns the number of pending webhook deliveries. Reads all deliveries to all webhook endpoints.
    ///
    /// # Errors
    /// [`TableError::Unreadable`] if a delivery cannot be read: it may be pending, and no program sends it.
    async fn count_pending_deliveries(&self) -> Result<u64, TableError> {
        let mut pending = 0;
        for endpoint in self.table.get_webhook_subscribers().await?.items {
            let deliveries = self.table.get_deliveries(endpoint.endpoint, &Paging::all(), DateTime::UNIX_EPOCH).await?;
            let deliveries = deliveries.into_items()?;
            let deliveries = deliveries.iter().filter(|delivery| delivery.status == DeliveryStatus::Pending);
            pending += u64::try_from(deliveries.count()).unwrap_or(u64::MAX);
        }
        Ok(pending)
    }
}

#[async_trait]
impl Queues for LocalQueues {
    async fn read(&self) -> Vec<QueueState> {
        let state = |name: &str, waiting: Option<u64>, keeps_failed_messages: bool| match waiting {
            Some(_) => QueueState {
                name: name.to_owned(),
                waiting,
                in_progress: Some(0),
                keeps_failed_messages: Some(keeps_failed_messages),
            },
            None => QueueState::unknown(name.to_owned()),
        };
        vec![
            state("Deliveries", self.count_pending_deliveries().await.ok(), false),
            state("Notices", self.unmailed_events.count().ok(), false),
            state("NoticesDelayed", self.delayed_mails.count().ok(), false),
            state("PaidNotOrdered", self.unplaced_orders.count().ok(), true),
        ]
    }
}

/// Returns the number of messages of `queue` as text.
pub fn describe_messages(queue: &QueueState) -> String {
    match (queue.waiting, queue.in_progress) {
        (Some(waiting), Some(in_progress)) => waiting.saturating_add(in_progress).to_string(),
        _ => "could not be read".to_owned(),
    }
}
