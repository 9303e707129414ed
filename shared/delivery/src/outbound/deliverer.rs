//! Delivers events to the webhook endpoints that subscribed to them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::Sender;
use billing::{Delivery, DeliveryKey, DeliveryStatus, ReceivedEvent, WebhookEndpoint};
use clock::Clock;
use store::{Paging, Table, TableError};

/// The reason why a delivery failed, if its endpoint does not exist any more.
const ENDPOINT_REMOVED: &str = "the endpoint was removed";
/// The log message for a stored endpoint that cannot be read. An alarm in `template.yaml` matches this text.
pub const ENDPOINT_UNREADABLE: &str = "a webhook endpoint cannot be read";
/// The log message if the last try of a delivery failed, but the endpoint accepts other events. An alarm in
/// `template.yaml` matches this text.
pub const EVENT_NOT_DELIVERED: &str = "an event could not be delivered";
/// The log message when the last try of a delivery fails and its endpoint is disabled. An alarm in `template.yaml`
/// matches this text.
pub const ENDPOINT_DISABLED: &str = "a webhook endpoint is disabled";

/// A queue that passes each delivery to [`Deliverer::deliver`] at least once.
#[async_trait]
pub trait DeliveryQueue: Send + Sync + fmt::Debug {
    /// Adds the deliveries `keys` to the queue, to be tried at once.
    ///
    /// # Errors
    /// Returns an error if the queue did not accept all of them. Some of them may be in the queue nevertheless.
    async fn send(&self, keys: &[DeliveryKey]) -> Result<(), QueueError>;
}

/// The error of a delivery queue that did not accept a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the delivery queue did not accept a message: {0}")]
pub struct QueueError(pub String);

/// The time of the next try of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextTry {
    /// There is no next try, because the delivery has succeeded or has finally failed.
    Done,
    /// The next try must not be before this instant.
    At(DateTime<Utc>),
}

/// The result of [`Deliverer::fan_out`]: the deliveries to try, and the number of unreadable endpoints.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FanOutResult {
    /// The deliveries to try.
    pub pending: Vec<DeliveryKey>,
    /// The number of stored endpoints that cannot be read. No delivery was created for them.
    pub unreadable_endpoints: usize,
}

/// Creates and tries the deliveries of events to webhook endpoints.
#[derive(Clone, Debug)]
pub struct Deliverer {
    table: Table,
    sender: Sender,
    clock: Arc<dyn Clock>,
}

impl Deliverer {
    /// Creates a deliverer that stores its deliveries in `table`.
    pub fn new(table: Table, sender: Sender, clock: Arc<dyn Clock>) -> Self {
        Self { table, sender, clock }
    }

    /// Creates a delivery of each of `events` for each endpoint that subscribed to the event type, and returns the
    /// pending deliveries. A delivery that already exists is not created again. Sends one Query for the endpoints, then
    /// one PutItem for each delivery.
    pub async fn fan_out(&self, events: &[ReceivedEvent]) -> Result<FanOutResult, TableError> {
        let endpoints = self.table.get_webhook_endpoints(&Paging::all()).await?;
        let mut fanned_out =
            FanOutResult { unreadable_endpoints: endpoints.unreadable.len(), ..FanOutResult::default() };
        for error in endpoints.unreadable {
            tracing::error!(%error, "{ENDPOINT_UNREADABLE} and receives no events");
        }
        for ReceivedEvent { id, event_type, json, .. } in events {
            for endpoint in endpoints.items.iter().filter(|endpoint| endpoint.receives(event_type)) {
                let key = DeliveryKey { endpoint: endpoint.id, event: id.clone() };
                let new = Delivery::new(key.clone(), event_type.clone(), json.clone(), self.clock.now());
                let is_pending = self.table.create_delivery(&new).await?
                    || self.table.get_delivery(&key).await?.is_some_and(|d| d.status == DeliveryStatus::Pending);
                if is_pending {
                    fanned_out.pending.push(key);
                }
            }
        }
        Ok(fanned_out)
    }

    /// Tries the delivery `key`, if it is pending and due.
    ///
    /// # Errors
    /// Returns an error if a request to the table fails. The endpoint may have received the event, and will receive it
    /// again.
    pub async fn deliver(&self, key: &DeliveryKey) -> Result<NextTry, TableError> {
        let Some(delivery) = self.table.get_delivery(key).await? else { return Ok(NextTry::Done) };
        let now = self.clock.now();
        match (delivery.status, delivery.next_try_at) {
            (DeliveryStatus::Pending, Some(next)) if now < next => return Ok(NextTry::At(next)),
            (DeliveryStatus::Pending, _) => {}
            (DeliveryStatus::Delivered | DeliveryStatus::Failed, _) => return Ok(NextTry::Done),
        }
        let updated = match self.table.get_webhook_endpoint(key.endpoint).await? {
            None => delivery.abandoned(ENDPOINT_REMOVED),
            Some(endpoint) => match &endpoint.disabled_because {
                Some(_) => delivery.abandoned("the endpoint is disabled"),
                None => self.try_delivery(&endpoint, &delivery, now).await?,
            },
        };
        // If another worker has tried the delivery at the same time and stored an outcome, keep the stored outcome.
        let update_if_unchanged = |stored: &Delivery| (stored.version == delivery.version).then(|| updated.clone());
        let stored = self.table.change_delivery(delivery.clone(), update_if_unchanged).await?;
        Ok(stored.and_then(|stored| stored.next_try_at).map_or(NextTry::Done, NextTry::At))
    }

    /// Sends the event of `delivery` to the endpoint, and returns the delivery with the outcome of this try, which the
    /// caller stores. Disables the endpoint if this was the last try and the endpoint has accepted no event since the
    /// delivery was created.
    async fn try_delivery(
        &self,
        endpoint: &WebhookEndpoint,
        delivery: &Delivery,
        now: DateTime<Utc>,
    ) -> Result<Delivery, TableError> {
        let (url, secrets) = (&endpoint.url, endpoint.secrets(now));
        let response = self.sender.deliver(url, &secrets, &delivery.key.event, now.timestamp(), &delivery.body).await;
        let updated = delivery.after_attempt(&response, self.clock.now());
        let (id, last_response) = (&endpoint.id, updated.last_response.as_deref().unwrap_or_default());
        match updated.status {
            DeliveryStatus::Delivered => {
                tracing::info!(endpoint = %id, attempts = updated.attempts, "an event was delivered");
                if endpoint.should_record_success(now) {
                    let with_success = |stored: &WebhookEndpoint| {
                        stored.should_record_success(now).then(|| stored.with_success_at(now))
                    };
                    self.table.change_webhook_endpoint(endpoint.clone(), with_success).await?;
                }
            }
            DeliveryStatus::Pending => {
                tracing::warn!(
                    endpoint = %id,
                    attempts = updated.attempts,
                    came_to = last_response,
                    "a delivery failed and will be retried"
                );
            }
            DeliveryStatus::Failed => {
                let because = format!(
                    "{} failed {} times; the last response was: {last_response}",
                    updated.event_type, updated.attempts
                );
                if !endpoint.has_no_success_since(delivery.created_at) {
                    let event = &delivery.key.event;
                    tracing::error!(
                        endpoint = %id,
                        event,
                        because,
                        "{EVENT_NOT_DELIVERED}; its endpoint accepts other events"
                    );
                    return Ok(updated);
                }
                // Log before the write: if the worker is killed right after the write, no later run logs the disabled
                // endpoint.
                tracing::error!(endpoint = %id, because, "{ENDPOINT_DISABLED}");
                let disable_if_dead = |stored: &WebhookEndpoint| {
                    // The stored endpoint may be newer than the copy that this try used: the merchant may have changed
                    // the URL, or the endpoint may have accepted another event. In both cases the endpoint stays
                    // enabled.
                    let is_dead = stored.url == endpoint.url && stored.has_no_success_since(delivery.created_at);
                    is_dead.then(|| stored.disabled(&because))
                };
                self.table.change_webhook_endpoint(endpoint.clone(), disable_if_dead).await?;
            }
        }
        Ok(updated)
    }
}
