//! Delivers events to webhook endpoints from one machine. The queue is only in memory, but the table stores every
//! pending delivery, so that the next server can load it.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use billing::{DeliveryKey, DeliveryStatus};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use delivery::{Deliverer, DeliveryQueue, NextTry, QueueError, Schedule, ScheduleLimits};
use store::{Paging, Table, TableError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::terminal::output;

/// The largest numbers of concurrent deliveries. An endpoint that does not respond uses only its own part of them.
const LIMITS: ScheduleLimits = ScheduleLimits { per_endpoint: 4, total: 64 };
/// The longest time that the worker waits before it looks for due deliveries.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);
/// The time until a delivery is tried again after the table could not be read or written.
const PAUSE_AFTER_ERROR: TimeDelta = TimeDelta::seconds(5);
/// The longest time that the worker pauses an endpoint without reading the endpoint again. An operator may have enabled
/// or repaired the endpoint in the meantime.
const LONGEST_PAUSE: TimeDelta = TimeDelta::seconds(60);

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
    schedule: Schedule,
    /// The errors of unreadable items that were printed, so that each is printed once.
    printed: BTreeSet<String>,
}

impl DeliveryWorker {
    /// Creates a worker for the deliveries in `table`, and the queue that sends further deliveries to the worker.
    pub fn new(table: Table, deliverer: Deliverer) -> (Self, LocalQueue) {
        let (sender, received) = unbounded_channel();
        let (schedule, printed) = (Schedule::new(LIMITS), BTreeSet::new());
        (Self { table, deliverer, received, schedule, printed }, LocalQueue(sender))
    }

    /// Makes the due deliveries until the future is dropped.
    pub async fn run(mut self, clock: &dyn Clock) {
        self.load_pending_deliveries().await;
        let mut in_progress: JoinSet<(DeliveryKey, Result<NextTry, TableError>)> = JoinSet::new();
        loop {
            let now = clock.now();
            while let Some(key) = self.schedule.start_next(now) {
                let deliverer = self.deliverer.clone();
                in_progress.spawn(async move {
                    let next = deliverer.deliver(&key).await;
                    (key, next)
                });
            }
            tokio::select! {
                Some(key) = self.received.recv() => self.schedule.add(now, key),
                Some(Ok((key, next))) = in_progress.join_next() => self.finish(key, next, clock.now()),
                () = tokio::time::sleep(WAKE_INTERVAL) => {}
            }
        }
    }

    /// Ends the try of the delivery `key` that had the result `next_try`.
    fn finish(&mut self, key: DeliveryKey, next_try: Result<NextTry, TableError>, now: DateTime<Utc>) {
        let next_try = match next_try {
            Ok(NextTry::EndpointWaits(until)) => NextTry::EndpointWaits(until.min(now + LONGEST_PAUSE)),
            Ok(next_try) => next_try,
            Err(error @ TableError::Unreadable { .. }) => {
                self.print_unreadable(&error);
                NextTry::Done
            }
            Err(error) => {
                output::print_message(format!("error: a webhook delivery failed and is tried again: {error}"));
                NextTry::At(now + PAUSE_AFTER_ERROR)
            }
        };
        self.schedule.finish(key, next_try);
    }

    /// Adds the pending deliveries in the table to the schedule. Prints the items that cannot be read.
    async fn load_pending_deliveries(&mut self) {
        let endpoints = match self.table.get_webhook_subscribers().await {
            Ok(endpoints) => endpoints,
            Err(error) => return print_not_loaded(&error),
        };
        let errors = endpoints.items.iter().filter_map(|endpoint| endpoint.error.as_ref());
        endpoints.unreadable.iter().chain(errors).for_each(|error| self.print_unreadable(error));
        for endpoint in endpoints.items {
            match self.table.get_deliveries(endpoint.endpoint, &Paging::all(), DateTime::UNIX_EPOCH).await {
                Ok(deliveries) => {
                    deliveries.unreadable.iter().for_each(|error| self.print_unreadable(error));
                    let is_pending = |delivery: &billing::Delivery| delivery.status == DeliveryStatus::Pending;
                    for delivery in deliveries.items.into_iter().filter(is_pending) {
                        self.schedule.add(delivery.next_try_at.unwrap_or_default(), delivery.key);
                    }
                }
                Err(error) => print_not_loaded(&error),
            }
        }
    }

    /// Prints the error of an unreadable item, unless it was printed before.
    fn print_unreadable(&mut self, error: &TableError) {
        if self.printed.insert(error.to_string()) {
            output::print_message(format!(
                "error: a webhook delivery is not made until an operator repairs it: {error}"
            ));
        }
    }
}

/// Prints that pending deliveries could not be read from the table.
fn print_not_loaded(error: &TableError) {
    output::print_message(format!(
        "error: pending webhook deliveries cannot be loaded and wait until the next start: {error}"
    ));
}
