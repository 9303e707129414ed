//! A worker that tries the deliveries of events in a local installation. Its queue is in the memory of the process.

use std::time::Duration;

use async_trait::async_trait;
use billing::DeliveryKey;
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use store::TableError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::{ConcurrencyLimits, Deliverer, DeliveryQueue, DeliveryScheduler, NextTryTime, QueueError};

/// The largest numbers of concurrent deliveries. An endpoint that does not respond occupies at most four of the 64
/// concurrent deliveries, so deliveries to other endpoints continue.
const CONCURRENCY_LIMITS: ConcurrencyLimits = ConcurrencyLimits { per_endpoint: 4, total: 64 };
/// The longest time that the worker waits before it looks for due deliveries.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);
/// The time until a delivery is tried again after the table could not be read or written.
const PAUSE_AFTER_ERROR: TimeDelta = TimeDelta::seconds(5);
/// The longest time that the worker pauses an endpoint without reading the endpoint again. An operator may have enabled
/// or repaired the endpoint in the meantime.
const LONGEST_PAUSE: TimeDelta = TimeDelta::seconds(60);

/// A queue of deliveries in the memory of the process.
#[derive(Clone, Debug)]
pub struct MemoryQueue(UnboundedSender<DeliveryKey>);

#[async_trait]
impl DeliveryQueue for MemoryQueue {
    async fn send(&self, keys: &[DeliveryKey]) -> Result<(), QueueError> {
        for key in keys {
            // If the worker has ended, the delivery stays pending in the table, and the next worker loads it.
            self.0.send(key.clone()).map_err(|_| QueueError("the worker that delivers events has ended".to_owned()))?;
        }
        Ok(())
    }
}

/// Tries the deliveries that were sent to the queue of this worker.
#[derive(Debug)]
pub struct DeliveryWorker {
    deliverer: Deliverer,
    /// The deliveries that were sent to the queue.
    received: UnboundedReceiver<DeliveryKey>,
    scheduler: DeliveryScheduler,
}

impl DeliveryWorker {
    /// Creates a worker, and the queue that sends deliveries to the worker.
    pub fn new(deliverer: Deliverer) -> (Self, MemoryQueue) {
        let (sender, received) = unbounded_channel();
        (Self { deliverer, received, scheduler: DeliveryScheduler::new(CONCURRENCY_LIMITS) }, MemoryQueue(sender))
    }

    /// Adds the delivery `key`, which must not be tried before `then`.
    pub fn add(&mut self, then: DateTime<Utc>, key: DeliveryKey) {
        self.scheduler.add(then, key);
    }

    /// Returns the number of deliveries that wait for a try.
    pub fn waiting_count(&self) -> usize {
        self.scheduler.waiting_count()
    }

    /// Tries the due deliveries, until the caller drops the future. Calls `report` with each error. A delivery that
    /// cannot be read is not tried again; after any other error the delivery is tried again.
    pub async fn run(mut self, clock: &dyn Clock, mut report: impl FnMut(TableError)) {
        let mut in_progress: JoinSet<(DeliveryKey, Result<NextTryTime, TableError>)> = JoinSet::new();
        loop {
            let now = clock.now();
            while let Some(key) = self.scheduler.start_next(now) {
                let deliverer = self.deliverer.clone();
                in_progress.spawn(async move {
                    let next = deliverer.deliver(&key).await;
                    (key, next)
                });
            }
            tokio::select! {
                Some(key) = self.received.recv() => self.scheduler.add(now, key),
                Some(Ok((key, next))) = in_progress.join_next() => {
                    let now = clock.now();
                    let next_try = next.unwrap_or_else(|error| {
                        let is_unreadable = matches!(error, TableError::Unreadable { .. });
                        report(error);
                        if is_unreadable { NextTryTime::Done } else { NextTryTime::At(now + PAUSE_AFTER_ERROR) }
                    });
                    self.scheduler.finish(key, match next_try {
                        NextTryTime::EndpointWaits(until) => NextTryTime::EndpointWaits(until.min(now + LONGEST_PAUSE)),
                        next_try => next_try,
                    });
                }
                () = tokio::time::sleep(WAKE_INTERVAL) => {}
            }
        }
    }
}
