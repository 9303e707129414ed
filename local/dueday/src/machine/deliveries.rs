//! Delivers events to webhook endpoints from one machine. The queue is only in memory, but the table stores every
//! pending delivery, so that the next server can load it.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use billing::{DeliveryKey, DeliveryStatus};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use delivery::{Deliverer, DeliveryQueue, NextTry, QueueError};
use store::{Paging, Table, TableError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::terminal::output;

/// The largest number of concurrent deliveries, so that one slow endpoint does not delay the deliveries to other
/// endpoints.
const MAX_CONCURRENT_DELIVERIES: usize = 16;
/// The longest time that the worker waits before it looks for due deliveries.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);
/// The time until a delivery is tried again after the table could not be read or written.
const PAUSE_AFTER_ERROR: TimeDelta = TimeDelta::seconds(5);

/// The queue of deliveries to webhook endpoints, in memory.
#[derive(Clone, Debug)]
pub struct LocalQueue(UnboundedSender<DeliveryKey>);

#[async_trait]
impl DeliveryQueue for LocalQueue {
    async fn send(&self, keys: &[DeliveryKey]) -> Result<(), QueueError> {
        for key in keys {
            // If the worker has ended, the delivery stays pending in the table, and the next server loads it.
            self.0.send(key.clone()).map_err(|_| QueueError("the worker that delivers events has ended".to_owned()))?;
        }
        Ok(())
    }
}

/// Delivers the events of the local server to webhook endpoints.
pub struct DeliveryWorker {
    table: Table,
    deliverer: Deliverer,
    /// The deliveries that were sent to the queue.
    received: UnboundedReceiver<DeliveryKey>,
    /// The deliveries that wait for their next try, ordered by the time of this try.
    waiting: BTreeSet<(DateTime<Utc>, DeliveryKey)>,
}

impl DeliveryWorker {
    /// Creates a worker for the deliveries in `table`, and the queue that sends further deliveries to the worker.
    pub fn new(table: Table, deliverer: Deliverer) -> (Self, LocalQueue) {
        let (sender, received) = unbounded_channel();
        (Self { table, deliverer, received, waiting: BTreeSet::new() }, LocalQueue(sender))
    }

    /// Makes the due deliveries until the future is dropped.
    pub async fn run(mut self, clock: &dyn Clock) {
        if let Err(error) = self.load_pending_deliveries().await {
            output::print_message(format!(
                "error: pending webhook deliveries cannot be loaded and wait until the next start: {error}"
            ));
        }
        let mut in_progress: JoinSet<(DeliveryKey, Result<NextTry, TableError>)> = JoinSet::new();
        loop {
            let now = clock.now();
            while in_progress.len() < MAX_CONCURRENT_DELIVERIES
                && self.waiting.first().is_some_and(|(then, _)| *then <= now)
                && let Some((_, key)) = self.waiting.pop_first()
            {
                let deliverer = self.deliverer.clone();
                in_progress.spawn(async move {
                    let next = deliverer.deliver(&key).await;
                    (key, next)
                });
            }
            tokio::select! {
                Some(key) = self.received.recv() => {
                    self.waiting.insert((now, key));
                }
                Some(Ok((key, next))) = in_progress.join_next() => match next {
                    Ok(NextTry::Done) => {}
                    Ok(NextTry::At(then)) => {
                        self.waiting.insert((then, key));
                    }
                    Err(error) => {
                        output::print_message(format!("error: a webhook delivery failed and is tried again: {error}"));
                        self.waiting.insert((now + PAUSE_AFTER_ERROR, key));
                    }
                },
                () = tokio::time::sleep(WAKE_INTERVAL) => {}
            }
        }
    }

    /// Adds the pending deliveries in the table to the waiting deliveries.
    async fn load_pending_deliveries(&mut self) -> Result<(), TableError> {
        for endpoint in self.table.get_webhook_endpoints(&Paging::all()).await?.items {
            let deliveries = self.table.get_deliveries(endpoint.id, &Paging::all(), DateTime::UNIX_EPOCH).await?;
            let pending = deliveries.items.into_iter().filter(|delivery| delivery.status == DeliveryStatus::Pending);
            self.waiting.extend(pending.map(|delivery| (delivery.next_try_at.unwrap_or_default(), delivery.key)));
        }
        Ok(())
    }
}
