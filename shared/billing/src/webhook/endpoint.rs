//! Endpoints: where events are delivered to.

use chrono::{DateTime, TimeDelta, Utc};
use ulid::Ulid;

use super::{EndpointUrl, Secret};
use crate::EventType;

/// A secret that was replaced is valid for so long, while the merchant's program learns the new one.
pub const SECRETS_OVERLAP: TimeDelta = TimeDelta::hours(24);

/// That an endpoint took something is noted again after so long: not each delivery is to write to its one item.
const NOTED_AGAIN_AFTER: TimeDelta = TimeDelta::hours(1);

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
    /// When it last took something, or up to an hour before that.
    pub last_taken_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub version: u64,
}

impl WebhookEndpoint {
    /// One that is made at `now` and told of all types.
    pub fn new(id: Ulid, url: EndpointUrl, secret: Secret, now: DateTime<Utc>) -> Self {
        Self {
            id,
            url,
            types: Vec::new(),
            disabled_because: None,
            secret,
            previous_secret: None,
            last_taken_at: None,
            created_at: now,
            version: 1,
        }
    }

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

    /// Until when the secret before the present one is valid, if it still is at `now`.
    pub fn previous_secret_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.previous_secret.as_ref().map(|(_, until)| *until).filter(|until| now < *until)
    }

    /// It, with `secret` from `now` on. The one before stays valid for [`SECRETS_OVERLAP`].
    ///
    /// # Errors
    /// Until when two secrets are valid already: a third would cut the first one's time short.
    pub fn rotated(&self, secret: Secret, now: DateTime<Utc>) -> Result<Self, DateTime<Utc>> {
        match self.previous_secret_until(now) {
            Some(until) => Err(until),
            None => {
                let previous_secret = now.checked_add_signed(SECRETS_OVERLAP).map(|until| (self.secret.clone(), until));
                Ok(Self { secret, previous_secret, ..self.clone() })
            }
        }
    }

    /// Whether it is to be noted that it takes something at `now`.
    pub fn is_news_that_it_takes(&self, now: DateTime<Utc>) -> bool {
        self.last_taken_at.is_none_or(|at| now.signed_duration_since(at) >= NOTED_AGAIN_AFTER)
    }

    /// It, having taken something at `now`.
    pub fn taken(&self, now: DateTime<Utc>) -> Self {
        Self { last_taken_at: Some(now), ..self.clone() }
    }

    /// Whether it has taken nothing since `at`, as far as is noted.
    pub fn has_taken_nothing_since(&self, at: DateTime<Utc>) -> bool {
        self.last_taken_at.is_none_or(|taken| taken < at)
    }

    /// It, with nothing delivered to it any more. What it was disabled for first stays.
    pub fn disabled(&self, because: &str) -> Self {
        let because = self.disabled_because.clone().unwrap_or_else(|| because.to_owned());
        Self { disabled_because: Some(because), ..self.clone() }
    }
}
