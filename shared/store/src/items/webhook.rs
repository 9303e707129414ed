//! Webhook endpoints and deliveries.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use super::super::{Key, TableError, keys};
use billing::EventType;
use billing::{Delivery, DeliveryKey, DeliveryStatus, EndpointUrl, Secret, WebhookEndpoint};
use dynamo::{Instant, expiry};

/// Deliveries are kept so long after they were made: so long they can be asked for again.
const DELIVERIES_KEPT: TimeDelta = TimeDelta::days(30);

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WebhookEndpointItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    endpoint_id: Ulid,
    url: EndpointUrl,
    types: Vec<String>,
    disabled_because: Option<String>,
    secret: String,
    previous_secret: Option<String>,
    previous_secret_until: Option<Instant>,
    #[serde(rename = "LastTakenDate")]
    last_taken_at: Option<Instant>,
    created_date: Instant,
    version: u64,
}

impl From<&WebhookEndpoint> for WebhookEndpointItem {
    fn from(endpoint: &WebhookEndpoint) -> Self {
        let Key { pk, sk } = keys::webhook_endpoint(endpoint.id);
        let previous = endpoint.previous_secret.as_ref();
        Self {
            pk,
            sk,
            endpoint_id: endpoint.id,
            url: endpoint.url.clone(),
            types: endpoint.types.iter().map(EventType::to_string).collect(),
            disabled_because: endpoint.disabled_because.clone(),
            secret: endpoint.secret.reveal(),
            previous_secret: previous.map(|(secret, _)| secret.reveal()),
            previous_secret_until: previous.map(|(_, until)| Instant(*until)),
            last_taken_at: endpoint.last_taken_at.map(Instant),
            created_date: Instant(endpoint.created_at),
            version: endpoint.version,
        }
    }
}

impl TryFrom<WebhookEndpointItem> for WebhookEndpoint {
    type Error = TableError;

    fn try_from(item: WebhookEndpointItem) -> Result<Self, TableError> {
        let key = Key { pk: item.pk, sk: item.sk };
        let unreadable = |reason: &str| TableError::unreadable(key.clone(), reason);
        let secret = |text: &str| text.parse::<Secret>().map_err(|_| unreadable("its secret is none"));
        let types = item.types.iter().map(|name| name.parse::<EventType>());
        let types: Result<_, _> = types.collect();
        let previous_secret = match (&item.previous_secret, item.previous_secret_until) {
            (Some(text), Some(Instant(until))) => Some((secret(text)?, until)),
            _ => None,
        };
        Ok(Self {
            id: item.endpoint_id,
            url: item.url,
            types: types.map_err(|_| unreadable("its attribute Types names a type that is not known"))?,
            disabled_because: item.disabled_because,
            secret: secret(&item.secret)?,
            previous_secret,
            last_taken_at: item.last_taken_at.map(|at| at.0),
            created_at: item.created_date.0,
            version: item.version,
        })
    }
}

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeliveryItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    endpoint_id: Ulid,
    event_id: String,
    event_type: String,
    body: String,
    status: DeliveryStatus,
    attempts: u32,
    last_answer: Option<String>,
    next_try: Option<Instant>,
    created_date: Instant,
    version: u64,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl From<&Delivery> for DeliveryItem {
    fn from(delivery: &Delivery) -> Self {
        let Key { pk, sk } = keys::delivery(&delivery.key);
        Self {
            pk,
            sk,
            endpoint_id: delivery.key.endpoint,
            event_id: delivery.key.event.clone(),
            event_type: delivery.event_type.clone(),
            body: delivery.body.clone(),
            status: delivery.status,
            attempts: delivery.attempts,
            last_answer: delivery.last_answer.clone(),
            next_try: delivery.next_try_at.map(Instant),
            created_date: Instant(delivery.created_at),
            version: delivery.version,
            ttl: expiry(delivery.created_at, DELIVERIES_KEPT),
        }
    }
}

impl From<DeliveryItem> for Delivery {
    fn from(item: DeliveryItem) -> Self {
        let next_try_at: Option<DateTime<Utc>> = item.next_try.map(|next| next.0);
        Self {
            key: DeliveryKey { endpoint: item.endpoint_id, event: item.event_id },
            event_type: item.event_type,
            body: item.body,
            status: item.status,
            attempts: item.attempts,
            last_answer: item.last_answer,
            next_try_at,
            created_at: item.created_date.0,
            version: item.version,
        }
    }
}
