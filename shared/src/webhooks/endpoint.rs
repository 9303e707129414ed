//! Endpoints: where events are delivered to.

use chrono::{DateTime, TimeDelta, Utc};
use ulid::Ulid;

use super::{EndpointUrl, Secret};
use crate::billing::EventType;

/// A secret that was replaced is valid for so long, while the merchant's program learns the new one.
pub const SECRETS_OVERLAP: TimeDelta = TimeDelta::hours(24);

/// A program of the merchant's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookEndpoint {
    pub id: Ulid,
    pub url: EndpointUrl,
    /// What it is told of; all types if there are none.
    pub types: Vec<EventType>,
    /// Why nothing is delivered to it; `None` while it is enabled.
    pub disabled_because: Option<String>,
    pub secret: Secret,
    /// The secret before it, and until when that is valid.
    pub previous_secret: Option<(Secret, DateTime<Utc>)>,
    pub created_at: DateTime<Utc>,
    pub version: u64,
}

impl WebhookEndpoint {
    /// Whether an event of the type that is called `event_type` is delivered to it.
    pub fn wants(&self, event_type: &str) -> bool {
        let is_of = |wanted: &EventType| wanted.to_string() == event_type;
        self.disabled_because.is_none() && (self.types.is_empty() || self.types.iter().any(is_of))
    }

    /// The secrets that are valid at `now`, the newest first.
    pub fn secrets(&self, now: DateTime<Utc>) -> Vec<Secret> {
        let previous = self.previous_secret.iter().filter(|(_, until)| now < *until).map(|(secret, _)| secret);
        std::iter::once(&self.secret).chain(previous).cloned().collect()
    }

    /// It, with `secret` from `now` on. The one before stays valid for [`SECRETS_OVERLAP`].
    pub fn rotated(&self, secret: Secret, now: DateTime<Utc>) -> Self {
        let previous_secret = Some((self.secret.clone(), now + SECRETS_OVERLAP));
        Self { secret, previous_secret, ..self.clone() }
    }

    /// It, with nothing delivered to it any more. What it was disabled for first stays.
    pub fn disabled(&self, because: &str) -> Self {
        let because = self.disabled_because.clone().unwrap_or_else(|| because.to_owned());
        Self { disabled_because: Some(because), ..self.clone() }
    }
}
