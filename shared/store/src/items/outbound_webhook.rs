//! The stored items of webhook endpoints, and of the deliveries of events to them.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{
    Delivery, DeliveryKey, DeliveryStatus, EndpointBackoff, EndpointUrl, EventType, ReceivedEvent, StoredSecret,
    WebhookEndpoint,
};
use dynamo::{Entity, Instant, expiry_timestamp, from_item, key_of_item};
use dynamo::{Item, Key, TableError};

/// How long a delivery is stored after it was created, or after a person last requested to send it again. During this
/// time, a person can request that the event is sent again.
pub(crate) const DELIVERY_RETENTION: TimeDelta = TimeDelta::days(30);

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WebhookEndpointItem {
    endpoint_id: Ulid,
    url: EndpointUrl,
    types: Vec<String>,
    disabled_because: Option<String>,
    secret: String,
    previous_secret: Option<String>,
    previous_secret_until: Option<Instant>,
    last_taken_date: Option<Instant>,
    consecutive_failures: Option<u32>,
    not_tried_until: Option<Instant>,
    failure_id: Option<Ulid>,
    created_date: Instant,
    version: u64,
}

impl Entity<PaymentsSchema> for WebhookEndpoint {
    type Attributes = WebhookEndpointItem;

    fn key(&self) -> Key {
        keys::key_of_webhook_endpoint(self.id)
    }

    fn attributes(&self) -> WebhookEndpointItem {
        let previous = self.previous_secret.as_ref();
        WebhookEndpointItem {
            endpoint_id: self.id,
            url: self.url.clone(),
            types: self.types.iter().map(EventType::to_string).collect(),
            disabled_because: self.disabled_because.clone(),
            secret: self.secret.to_text(),
            previous_secret: previous.map(|(secret, _)| secret.to_text()),
            previous_secret_until: previous.map(|(_, until)| Instant(*until)),
            last_taken_date: self.last_success_at.map(Instant),
            consecutive_failures: Some(self.backoff.failures).filter(|failures| *failures > 0),
            not_tried_until: self.backoff.until.map(Instant),
            failure_id: self.backoff.changed_by,
            created_date: Instant(self.created_at),
            version: self.version,
        }
    }

    fn read(key: Key, item: WebhookEndpointItem) -> Result<Self, TableError> {
        let unreadable = |reason: &str| TableError::unreadable(key.clone(), reason);
        let secret =
            |text: &str| text.parse::<StoredSecret>().map_err(|_| unreadable("its signing secret is not valid"));
        let types = item.types.iter().map(|name| name.parse::<EventType>());
        let types: Result<_, _> = types.collect();
        let previous_secret = match (&item.previous_secret, item.previous_secret_until) {
            (Some(text), Some(Instant(until))) => Some((secret(text)?, until)),
            _ => None,
        };
        Ok(Self {
            id: item.endpoint_id,
            url: item.url,
            types: types.map_err(|_| unreadable("its attribute Types contains an unknown event type"))?,
            disabled_because: item.disabled_because,
            secret: secret(&item.secret)?,
            previous_secret,
            last_success_at: item.last_taken_date.map(|at| at.0),
            backoff: EndpointBackoff {
                failures: item.consecutive_failures.unwrap_or_default(),
                until: item.not_tried_until.map(|until| until.0),
                changed_by: item.failure_id,
            },
            created_at: item.created_date.0,
            version: item.version,
        })
    }
}

/// The id, the event types and the back-off of a webhook endpoint. They can be read even from an item in which another attribute of
/// the endpoint is unreadable, so that the endpoint loses no event.
#[derive(Debug)]
pub struct EventSubscriber {
    /// The id of the endpoint.
    pub endpoint: Ulid,
    /// The names of the event types that the endpoint receives; an empty list means all types.
    pub types: Vec<String>,
    /// Whether the endpoint is disabled.
    pub is_disabled: bool,
    /// The instant until which the back-off of the endpoint lasts; `None` if there is no back-off.
    pub backoff_until: Option<DateTime<Utc>>,
    /// The reason why the whole endpoint cannot be read; `None` if the whole endpoint can be read.
    pub error: Option<TableError>,
}

impl EventSubscriber {
    /// Returns whether the endpoint is enabled and receives events of `event_type`.
    pub fn receives(&self, event_type: &str) -> bool {
        !self.is_disabled && (self.types.is_empty() || self.types.iter().any(|name| name == event_type))
    }
}

/// The attributes of a webhook endpoint that determine which events it receives.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct SubscribedTypes {
    #[serde(default)]
    types: Vec<String>,
    disabled_because: Option<String>,
}

/// The attribute of a webhook endpoint with the end of its back-off.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct BackoffEnd {
    not_tried_until: Option<Instant>,
}

/// Reads the id and the event types of the webhook endpoint in `item`, also if the whole endpoint cannot be read. If
/// the event types cannot be read, the endpoint receives all types, so that no event is lost.
///
/// # Errors
/// [`TableError::Unreadable`] if the key contains no endpoint id.
pub fn read_event_subscriber(item: &Item) -> Result<EventSubscriber, TableError> {
    let error = WebhookEndpoint::from_item(item).err();
    let key = key_of_item(item);
    let endpoint = keys::parse_webhook_endpoint(&key)
        .ok_or_else(|| TableError::unreadable(key, "its sort key contains no id of an endpoint"))?;
    let SubscribedTypes { types, disabled_because } = from_item(item).unwrap_or_default();
    let BackoffEnd { not_tried_until } = from_item(item).unwrap_or_default();
    let (is_disabled, backoff_until) = (disabled_because.is_some(), not_tried_until.map(|until| until.0));
    Ok(EventSubscriber { endpoint, types, is_disabled, backoff_until, error })
}

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeliveryItem {
    endpoint_id: Ulid,
    event_id: String,
    event_type: String,
    body: String,
    status: DeliveryStatus,
    attempts: u32,
    last_answer: Option<String>,
    next_try: Option<Instant>,
    created_date: Instant,
    restarted_date: Option<Instant>,
    version: u64,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl Entity<PaymentsSchema> for Delivery {
    type Attributes = DeliveryItem;

    fn key(&self) -> Key {
        keys::key_of_delivery(&self.key)
    }

    fn attributes(&self) -> DeliveryItem {
        DeliveryItem {
            endpoint_id: self.key.endpoint,
            event_id: self.key.event.clone(),
            event_type: self.event_type.clone(),
            body: self.body.clone(),
            status: self.status,
            attempts: self.attempts,
            last_answer: self.last_response.clone(),
            next_try: self.next_try_at.map(Instant),
            created_date: Instant(self.created_at),
            restarted_date: self.restarted_at.map(Instant),
            version: self.version,
            ttl: expiry_timestamp(self.started_at(), DELIVERY_RETENTION),
        }
    }

    fn read(_: Key, item: DeliveryItem) -> Result<Self, TableError> {
        let next_try_at: Option<DateTime<Utc>> = item.next_try.map(|next| next.0);
        Ok(Self {
            key: DeliveryKey { endpoint: item.endpoint_id, event: item.event_id },
            event_type: item.event_type,
            body: item.body,
            status: item.status,
            attempts: item.attempts,
            last_response: item.last_answer,
            next_try_at,
            created_at: item.created_date.0,
            restarted_at: item.restarted_date.map(|at| at.0),
            version: item.version,
        })
    }
}

/// An entry in the list of the deliveries that wait for their next try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingDelivery {
    /// The delivery that waits.
    pub delivery: DeliveryKey,
    /// The instant before which the delivery must not be tried.
    pub next_try_at: DateTime<Utc>,
    /// Differs for each entry, also if a worker adds an entry with the same keys again while the earlier one is removed.
    pub id: Ulid,
}

/// The attributes of an entry in the list of the waiting deliveries.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WaitingDeliveryItem {
    entry_id: Ulid,
    /// An entry of an endpoint that exists is removed when it is due. The entries of a removed endpoint expire.
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl Entity<PaymentsSchema> for WaitingDelivery {
    type Attributes = WaitingDeliveryItem;

    fn key(&self) -> Key {
        keys::key_of_waiting_delivery(&self.delivery, self.next_try_at)
    }

    fn attributes(&self) -> WaitingDeliveryItem {
        WaitingDeliveryItem { entry_id: self.id, ttl: expiry_timestamp(self.next_try_at, DELIVERY_RETENTION) }
    }

    fn read(key: Key, item: WaitingDeliveryItem) -> Result<Self, TableError> {
        let (delivery, next_try_at) = keys::parse_waiting_delivery(&key)
            .ok_or_else(|| TableError::unreadable(key, "its keys are not those of a waiting delivery"))?;
        Ok(Self { delivery, next_try_at, id: item.entry_id })
    }
}

/// Creates a restarted delivery with the event that `item` contains, for an item that cannot be read as the delivery
/// `key`. Returns `None` if the item does not contain the event of `key`.
pub fn recover_delivery(key: &DeliveryKey, item: &Item, now: DateTime<Utc>) -> Option<Delivery> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct StoredEventBody {
        body: String,
    }
    let StoredEventBody { body } = from_item(item).ok()?;
    let event = ReceivedEvent::read(&body).ok().filter(|event| event.id == key.event)?;
    Some(Delivery::new(key.clone(), event.event_type, body, now).restarted(now))
}
