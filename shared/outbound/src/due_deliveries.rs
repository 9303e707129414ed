//! Sends the waiting deliveries to the queue when they are due. A schedule starts this on AWS. An invocation by a message must
//! not send a delivery to the queue again, because Lambda stops a chain of messages that has invoked the same function about
//! 16 times (recursive loop detection).

use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use store::{EventSubscriber, TableError, WaitingDelivery};

use super::log_messages::ENDPOINT_UNREADABLE;
use super::{Deliverer, DeliveryQueue, QueueError};

/// The largest number of waiting deliveries that are read and sent to the queue together.
const BATCH_SIZE: usize = 100;
/// The largest number of waiting deliveries to one endpoint that one run sends. The next run sends further ones.
const MAX_PER_ENDPOINT: usize = 2_000;
/// The largest number of endpoints whose deliveries are sent at the same time.
const CONCURRENT_ENDPOINTS: usize = 4;
/// The largest number of requests in progress that add deliveries to the list or remove them.
const CONCURRENT_WRITES: usize = 10;
/// A run stops after this time, before the schedule starts the next run a minute after this run.
const RUN_TIME: TimeDelta = TimeDelta::seconds(45);

/// The reason why the due deliveries could not be sent to the queue. The next run sends them.
#[derive(Debug, thiserror::Error)]
pub enum SendDueError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl SendDueError {
    /// Returns the name of the error, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        match self {
            Self::Table(_) => "Table",
            Self::Queue(_) => "Queue",
        }
    }
}

impl Deliverer {
    /// Adds the deliveries in `waiting` to the list of the waiting deliveries. Returns the indexes of the deliveries that could
    /// not be added, whose messages must stay in the queue.
    pub async fn add_waiting(&self, waiting: &[WaitingDelivery]) -> Vec<usize> {
        let added = stream::iter(waiting.iter().enumerate());
        let added = added.map(async |(index, one)| (index, self.table.add_waiting_delivery(one).await));
        let results: Vec<_> = added.buffered(CONCURRENT_WRITES).collect().await;
        let failed = results.into_iter().filter_map(|(index, result)| Some((index, result.err()?)));
        failed
            .map(|(index, error)| {
                tracing::error!(%error, error_type = "Table", "a message could not be postponed and stays in the queue");
                index
            })
            .collect()
    }

    /// Sends the waiting deliveries that are due to `queue`, and removes them from the list. Returns their number. While
    /// an endpoint is in back-off, sends none of its deliveries; at the end of the back-off, sends one of them, as the
    /// probe. If the run is killed, a delivery may be sent twice: the second message finds the outcome of the first. Sends
    /// nothing from a copy of the table until an operator has confirmed the copy, because the original sends the same.
    ///
    /// # Errors
    /// [`SendDueError`] for the list of the endpoints, or for each endpoint whose requests to the table or to the queue failed.
    /// The deliveries to the other endpoints are sent nevertheless.
    pub async fn send_due(&self, queue: &dyn DeliveryQueue) -> Result<usize, Vec<SendDueError>> {
        let started_at = self.clock.now();
        let settings = self.table.get_settings().await.map_err(|error| vec![error.into()])?;
        if settings.is_some_and(|settings| settings.copy_noticed_at.is_some()) {
            return Ok(0);
        }
        let subscribers = self.table.get_webhook_subscribers().await.map_err(|error| vec![error.into()])?;
        for error in &subscribers.unreadable {
            tracing::error!(%error, error_type = "Table", "{ENDPOINT_UNREADABLE}");
        }
        let sent = stream::iter(&subscribers.items).map(|endpoint| self.send_due_to(endpoint, queue, started_at));
        let results: Vec<_> = sent.buffer_unordered(CONCURRENT_ENDPOINTS).collect().await;
        let (mut sent, mut errors) = (0_usize, Vec::new());
        for result in results {
            match result {
                Ok(number) => sent = sent.saturating_add(number),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(sent) } else { Err(errors) }
    }

    /// Sends the due deliveries to `endpoint` to `queue`, as long as the run that began at `started_at` may last. Returns
    /// their number.
    async fn send_due_to(
        &self,
        endpoint: &EventSubscriber,
        queue: &dyn DeliveryQueue,
        started_at: DateTime<Utc>,
    ) -> Result<usize, SendDueError> {
        let most = max_queued_deliveries(endpoint, started_at);
        let mut sent = 0;
        while sent < most && self.clock.now() - started_at < RUN_TIME {
            let limit = BATCH_SIZE.min(most - sent);
            let due = self.table.get_due_deliveries(endpoint.endpoint, started_at, limit).await?;
            let keys: Vec<_> = due.iter().map(|waiting| waiting.delivery.clone()).collect();
            queue.send(&keys).await?;
            let removals = stream::iter(&due).map(|waiting| self.table.remove_waiting_delivery(waiting));
            removals.buffer_unordered(CONCURRENT_WRITES).try_collect::<()>().await?;
            sent += due.len();
            if due.len() < limit {
                break;
            }
        }
        Ok(sent)
    }
}

/// Returns how many deliveries to `endpoint` may be sent to the queue at `now`. Deliveries to a disabled or unreadable
/// endpoint are sent like others: their tries store that they have failed, or that they must wait.
fn max_queued_deliveries(endpoint: &EventSubscriber, now: DateTime<Utc>) -> usize {
    match endpoint.backoff_until.filter(|_| !endpoint.is_disabled && endpoint.error.is_none()) {
        None => MAX_PER_ENDPOINT,
        Some(until) if now < until => 0,
        Some(_) => 1,
    }
}
