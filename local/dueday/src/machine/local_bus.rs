//! The event bus of the local system. It passes each event to the journal, the webhook endpoints, the order desk and
//! the notices to customers.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use billing::ReceivedEvent;
use orders_desk::{OrderDesk, ProcessEventError};
use outbound::{Deliverer, DeliveryQueue as _, MemoryQueue};
use publishing::{BusEntry, EventBus, FailedEntry, StreamEvent};

use super::event_file::EventFile;
use super::journal::EventJournal;
use super::notice_sender::NoticeSender;
use crate::terminal::output;

/// The event bus of the local system, with the parts that process each published event.
pub struct LocalBus {
    pub journal: Arc<EventJournal>,
    pub deliverer: Deliverer,
    /// The queue of webhook deliveries. `None` if this process runs no server. The deliveries then stay pending in the
    /// table until a server makes them.
    pub queue: Option<MemoryQueue>,
    pub desk: OrderDesk,
    /// The events of payments whose order could not be placed.
    pub unplaced_orders: EventFile,
    pub notice_sender: Arc<NoticeSender>,
}

#[async_trait]
impl EventBus for LocalBus {
    async fn publish_entries(&self, entries: &[BusEntry]) -> Vec<FailedEntry> {
        let refused = self.journal.publish_entries(entries).await;
        if !refused.is_empty() {
            return refused;
        }
        let events: Vec<ReceivedEvent> = entries
            .iter()
            .filter_map(|entry| match &entry.event {
                StreamEvent::Event(event) => Some(event.clone().into()),
                StreamEvent::Operator(_) => None,
            })
            .collect();
        match self.consume_events(&events).await {
            Ok(()) => Vec::new(),
            Err(reason) => (0..entries.len()).map(|index| FailedEntry { index, reason: reason.clone() }).collect(),
        }
    }
}

impl LocalBus {
    /// Passes `events` to the webhook endpoints, the order desk and the notices to customers.
    async fn consume_events(&self, events: &[ReceivedEvent]) -> Result<(), String> {
        let deliveries = self.deliverer.fan_out(events).await.map_err(|error| error.to_string())?;
        if let Some(queue) = &self.queue {
            queue.send(&deliveries).await.map_err(|error| error.to_string())?;
        }
        for event in events {
            self.place_order(event).await?;
        }
        self.notice_sender.enqueue_events(events).map_err(|error| error.to_string())
    }

    /// Places the order that a payment's `event` causes. If a person must act before the order can be placed, stores
    /// the event in the file of unplaced orders.
    async fn place_order(&self, event: &ReceivedEvent) -> Result<(), String> {
        match orders_desk::process_event(&self.desk, event).await {
            Ok(()) => Ok(()),
            Err(error) if error.is_transient() => Err(error.to_string()),
            Err(error) => self.store_unplaced_order(&event.json, &error),
        }
    }

    /// Stores `event` in the file of unplaced orders. The event is not retried now, because a retry would fail again
    /// and would delay all later events.
    fn store_unplaced_order(&self, event: &str, error: &ProcessEventError) -> Result<(), String> {
        let path = self.unplaced_orders.path().display();
        output::print_message(format!(
            "error: the order of a payment cannot be placed: {error}. The payment's event is stored in {path}"
        ));
        self.unplaced_orders.append(event).map_err(|error| error.to_string())
    }

    /// Tries again to place the orders of the events in the file of unplaced orders. Events whose order still cannot be
    /// placed are stored and reported again.
    ///
    /// # Errors
    /// If the file of unplaced orders cannot be used, or the orders table cannot be reached. The next call tries all
    /// events again.
    pub async fn retry_unplaced_orders(&self) -> io::Result<()> {
        for event in self.unplaced_orders.start_retry()? {
            let ordered = match ReceivedEvent::read(&event) {
                Ok(event) => self.place_order(&event).await,
                Err(error) => self.store_unplaced_order(&event, &error.into()),
            };
            ordered.map_err(io::Error::other)?;
        }
        self.unplaced_orders.finish_retry()
    }
}
