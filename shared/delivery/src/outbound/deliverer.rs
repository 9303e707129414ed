//! Events brought to the endpoints that want them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::Sender;
use billing::{Delivery, DeliveryKey, DeliveryStatus, ReceivedEvent, WebhookEndpoint};
use clock::Clock;
use store::{Paging, Table, TableError};

const GONE: &str = "the endpoint was removed";
/// Logged for each stored endpoint that cannot be read. An alarm in `template.yaml` matches it.
pub const ENDPOINT_UNREADABLE: &str = "a webhook endpoint cannot be read";
/// Logged when the last try of an event fails at an endpoint that accepts others. An alarm in `template.yaml` matches it.
pub const EVENT_GIVEN_UP: &str = "an event is given up";
/// Logged when an endpoint is disabled. An alarm in `template.yaml` matches it.
pub const ENDPOINT_DISABLED: &str = "a webhook endpoint is disabled";

/// What brings a delivery to [`Deliverer::deliver`] at least once.
#[async_trait]
pub trait DeliveryQueue: Send + Sync + fmt::Debug {
    /// Takes `keys`, to be delivered now.
    ///
    /// # Errors
    /// [`QueueError`]: some of them may have been taken.
    async fn send(&self, keys: &[DeliveryKey]) -> Result<(), QueueError>;
}

/// A queue did not take what it was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the delivery queue did not take a message: {0}")]
pub struct QueueError(pub String);

/// What is to become of a message that names a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It is done with.
    Done,
    /// It is to come again at this instant.
    At(DateTime<Utc>),
}

/// What became of events that were fanned out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FannedOut {
    /// Deliveries that are to be tried.
    pub pending: Vec<DeliveryKey>,
    /// So many endpoints cannot be read: no delivery was made for them.
    pub unreadable_endpoints: usize,
}

/// Brings events to endpoints.
#[derive(Clone, Debug)]
pub struct Deliverer {
    table: Table,
    sender: Sender,
    clock: Arc<dyn Clock>,
}

impl Deliverer {
    /// One that keeps its deliveries in `table`.
    pub fn new(table: Table, sender: Sender, clock: Arc<dyn Clock>) -> Self {
        Self { table, sender, clock }
    }

    /// Creates a delivery of each of `events` for each endpoint that wants it, and returns the pending deliveries. A delivery
    /// that exists is not created again. One Query of the endpoints, then a PutItem for each delivery.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn fan_out(&self, events: &[ReceivedEvent]) -> Result<FannedOut, TableError> {
        let endpoints = self.table.get_webhook_endpoints(&Paging::all()).await?;
        let mut fanned_out = FannedOut { unreadable_endpoints: endpoints.unreadable.len(), ..FannedOut::default() };
        for error in endpoints.unreadable {
            tracing::error!(%error, "{ENDPOINT_UNREADABLE}, and is told nothing");
        }
        for ReceivedEvent { id, event_type, json, .. } in events {
            for endpoint in endpoints.items.iter().filter(|endpoint| endpoint.wants(event_type)) {
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

    /// Tries the delivery `key`, if its time has come.
    ///
    /// # Errors
    /// [`TableError`]: it may have been delivered, and will be delivered again.
    pub async fn deliver(&self, key: &DeliveryKey) -> Result<Next, TableError> {
        let Some(delivery) = self.table.get_delivery(key).await? else { return Ok(Next::Done) };
        let now = self.clock.now();
        match (delivery.status, delivery.next_try_at) {
            (DeliveryStatus::Pending, Some(next)) if now < next => return Ok(Next::At(next)),
            (DeliveryStatus::Pending, _) => {}
            (DeliveryStatus::Delivered | DeliveryStatus::Failed, _) => return Ok(Next::Done),
        }
        let after = match self.table.get_webhook_endpoint(key.endpoint).await? {
            None => delivery.given_up(GONE),
            Some(endpoint) => match &endpoint.disabled_because {
                Some(_) => delivery.given_up("the endpoint is disabled"),
                None => self.attempt(&endpoint, &delivery, now).await?,
            },
        };
        // Whoever else has tried it meanwhile has said what came of it.
        let unless_tried = |stored: &Delivery| (stored.version == delivery.version).then(|| after.clone());
        let stored = self.table.change_delivery(delivery.clone(), unless_tried).await?;
        Ok(stored.and_then(|stored| stored.next_try_at).map_or(Next::Done, Next::At))
    }

    async fn attempt(
        &self,
        endpoint: &WebhookEndpoint,
        delivery: &Delivery,
        now: DateTime<Utc>,
    ) -> Result<Delivery, TableError> {
        let (url, secrets) = (&endpoint.url, endpoint.secrets(now));
        let answer = self.sender.deliver(url, &secrets, &delivery.key.event, now.timestamp(), &delivery.body).await;
        let after = delivery.tried(&answer, self.clock.now());
        let (id, came_to) = (&endpoint.id, after.last_answer.as_deref().unwrap_or_default());
        match after.status {
            DeliveryStatus::Delivered => {
                tracing::info!(endpoint = %id, attempts = after.attempts, "an event is delivered");
                if endpoint.is_news_that_it_takes(now) {
                    let taken = |stored: &WebhookEndpoint| stored.is_news_that_it_takes(now).then(|| stored.taken(now));
                    self.table.change_webhook_endpoint(endpoint.clone(), taken).await?;
                }
            }
            DeliveryStatus::Pending => {
                tracing::warn!(endpoint = %id, attempts = after.attempts, came_to, "an event is not delivered yet");
            }
            DeliveryStatus::Failed => {
                let because =
                    format!("{} was tried {} times, and at last: {came_to}", after.event_type, after.attempts);
                if !endpoint.has_taken_nothing_since(delivery.created_at) {
                    let event = &delivery.key.event;
                    tracing::error!(endpoint = %id, event, because, "{EVENT_GIVEN_UP}, and its endpoint takes others");
                    return Ok(after);
                }
                // Said first: after a crash here nobody would say it.
                tracing::error!(endpoint = %id, because, "{ENDPOINT_DISABLED}");
                let disabled = |stored: &WebhookEndpoint| {
                    // It may have been moved meanwhile, or have come to itself.
                    let is_dead = stored.url == endpoint.url && stored.has_taken_nothing_since(delivery.created_at);
                    is_dead.then(|| stored.disabled(&because))
                };
                self.table.change_webhook_endpoint(endpoint.clone(), disabled).await?;
            }
        }
        Ok(after)
    }
}
