//! The queues of the local system. They have the names of the queues on AWS, but their messages are in the table and in
//! files of the data folder.

use std::sync::Arc;

use api::QueueStateReader;
use async_trait::async_trait;
use billing::{Delivery, DeliveryStatus, ReceivedEvent};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use days::QueueState;
use store::{Paging, Table, TableError};

use super::data_folder::{delayed_mails_file, unmailed_events_file, unplaced_orders_file};
use super::event_file::EventFile;
use crate::options::Options;

/// How long a message waits at most, unless the mail server or the server itself does not work. The alarm about late mails on
/// AWS has the same limit.
const MAX_WAIT: TimeDelta = TimeDelta::hours(3);

/// The queues of the local system. `NoticesDelayed` and `DeliveriesFailed` exist only here: on AWS, delayed notices stay in the
/// queue `Notices`, and an alarm reports an endpoint that refuses an event for three days.
#[derive(Clone, Debug)]
pub struct LocalQueues {
    table: Table,
    clock: Arc<dyn Clock>,
    /// The events whose mails are not sent yet.
    unmailed_events: EventFile,
    /// The events whose mails are delayed, because their recipients did not accept them.
    delayed_mails: EventFile,
    /// The events of payments whose order could not be placed.
    unplaced_orders: EventFile,
}

impl LocalQueues {
    /// Creates a reader of the queues. `options` select the data folder, and `table` is its payments table.
    pub fn new(table: Table, clock: Arc<dyn Clock>, options: &Options) -> Self {
        Self {
            table,
            clock,
            unmailed_events: EventFile::new(unmailed_events_file(options)),
            delayed_mails: EventFile::new(delayed_mails_file(options)),
            unplaced_orders: EventFile::new(unplaced_orders_file(options)),
        }
    }

    /// Returns the deliveries to the enabled webhook endpoints.
    ///
    /// # Errors
    /// [`TableError::Unreadable`] if a delivery cannot be read: it may be pending, and no program sends it.
    async fn read_deliveries(&self) -> Result<Vec<Delivery>, TableError> {
        let mut all = Vec::new();
        for endpoint in self.table.get_webhook_subscribers().await?.items {
            let deliveries = self.table.get_deliveries(endpoint.endpoint, &Paging::all(), DateTime::UNIX_EPOCH).await?;
            all.extend(deliveries.into_items()?);
        }
        Ok(all)
    }

    /// Returns the states of the pending and of the failed deliveries.
    async fn states_of_deliveries(&self, now: DateTime<Utc>) -> [QueueState; 2] {
        let Ok(deliveries) = self.read_deliveries().await else {
            return ["Deliveries", "DeliveriesFailed"].map(|name| QueueState::unknown(name.to_owned()));
        };
        let with = |status| deliveries.iter().filter(move |delivery| delivery.status == status);
        let count = |status| u64::try_from(with(status).count()).unwrap_or(u64::MAX);
        let since = with(DeliveryStatus::Pending).map(|delivery| delivery.restarted_at.unwrap_or(delivery.created_at));
        [
            queue_state("Deliveries", count(DeliveryStatus::Pending), false, late_message_time(since.min(), now)),
            queue_state("DeliveriesFailed", count(DeliveryStatus::Failed), true, None),
        ]
    }
}

#[async_trait]
impl QueueStateReader for LocalQueues {
    async fn read_queue_states(&self) -> Vec<QueueState> {
        let now = self.clock.now();
        let file = |name: &str, file: &EventFile, keeps_failed_messages: bool| match file.read_events() {
            Ok(events) => {
                let times = events.iter().filter_map(|event| ReceivedEvent::read(event).ok()?.time);
                let count = u64::try_from(events.len()).unwrap_or(u64::MAX);
                queue_state(name, count, keeps_failed_messages, late_message_time(times.min(), now))
            }
            Err(_) => QueueState::unknown(name.to_owned()),
        };
        let [pending, failed] = self.states_of_deliveries(now).await;
        vec![
            pending,
            failed,
            file("Notices", &self.unmailed_events, false),
            file("NoticesDelayed", &self.delayed_mails, false),
            file("PaidNotOrdered", &self.unplaced_orders, true),
        ]
    }
}

/// Returns the state of the changes whose events are not published, because no server runs. `since` is the time of the
/// oldest change.
pub fn state_of_unpublished_changes(changes: u64, since: DateTime<Utc>, now: DateTime<Utc>) -> QueueState {
    queue_state("Unpublished", changes, false, late_message_time(Some(since), now))
}

/// Returns the state of a queue in which no message is in progress.
fn queue_state(name: &str, waiting: u64, keeps_failed_messages: bool, late_since: Option<DateTime<Utc>>) -> QueueState {
    QueueState {
        name: name.to_owned(),
        waiting: Some(waiting),
        in_progress: Some(0),
        keeps_failed_messages: Some(keeps_failed_messages),
        late_since,
        read_error: None,
    }
}

/// Returns `oldest`, the time of the oldest message of a queue, if it has waited for too long at `now`.
fn late_message_time(oldest: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    oldest.filter(|oldest| *oldest + MAX_WAIT < now)
}

/// Returns the number of messages of `queue` as text.
pub fn describe_messages(queue: &QueueState) -> String {
    match (queue.waiting, queue.in_progress) {
        (Some(waiting), Some(in_progress)) => waiting.saturating_add(in_progress).to_string(),
        _ => "could not be read".to_owned(),
    }
}
