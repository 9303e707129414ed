//! Webhook endpoints of the merchant, to which events are delivered.

use chrono::{DateTime, TimeDelta, Utc};
use ulid::Ulid;

use super::{EndpointBackoff, EndpointUrl, StoredSecret};
use crate::EventType;

/// How long the replaced signing secret of a webhook endpoint stays valid, so that the merchant has time to configure
/// the new one.
pub const SECRETS_OVERLAP: TimeDelta = TimeDelta::hours(24);

/// The minimum time between two updates of the stored time of the last success, so that not every delivery writes to
/// the item of the endpoint.
const SUCCESS_UPDATE_INTERVAL: TimeDelta = TimeDelta::hours(1);

/// A webhook endpoint: a program of the merchant that receives events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookEndpoint {
    pub id: Ulid,
    pub url: EndpointUrl,
    /// The types of events that the endpoint receives; an empty list means all types.
    pub types: Vec<EventType>,
    /// The reason why the endpoint is disabled; `None` while it is enabled.
    pub disabled_because: Option<String>,
    pub secret: StoredSecret,
    /// The replaced secret and the end of its validity; `None` if the secret was never replaced.
    pub previous_secret: Option<(StoredSecret, DateTime<Utc>)>,
    /// When the endpoint last accepted an event; `None` if it never did. The stored time may be an hour too early,
    /// because it is updated at most once an hour.
    pub last_success_at: Option<DateTime<Utc>>,
    /// The failed tries since the last success, and the time until which the endpoint is not tried.
    pub backoff: EndpointBackoff,
    pub created_at: DateTime<Utc>,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

impl WebhookEndpoint {
    /// Creates an enabled endpoint that receives events of all types.
    pub fn new(id: Ulid, url: EndpointUrl, secret: StoredSecret, now: DateTime<Utc>) -> Self {
        Self {
            id,
            url,
            types: Vec::new(),
            disabled_because: None,
            secret,
            previous_secret: None,
            last_success_at: None,
            backoff: EndpointBackoff::default(),
            created_at: now,
            version: 1,
        }
    }

    /// Returns whether the endpoint is enabled and receives events of `event_type`.
    pub fn receives(&self, event_type: &str) -> bool {
        let is_type = |listed: &EventType| listed.to_string() == event_type;
        self.disabled_because.is_none() && (self.types.is_empty() || self.types.iter().any(is_type))
    }

    /// Returns the previous signing secret, if it is valid at `now`.
    pub fn valid_previous_secret(&self, now: DateTime<Utc>) -> Option<&StoredSecret> {
        self.previous_secret.as_ref().filter(|(_, until)| now < *until).map(|(secret, _)| secret)
    }

    /// Returns when the replaced secret expires; `None` if no secret was replaced, or if the replaced secret is not
    /// valid any more at `now`.
    pub fn previous_secret_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.previous_secret.as_ref().map(|(_, until)| *until).filter(|until| now < *until)
    }

    /// Returns the endpoint with the new signing secret `secret`. The replaced secret stays valid for
    /// [`SECRETS_OVERLAP`].
    ///
    /// # Errors
    /// If two secrets are valid already, returns the time at which the older secret expires. A third secret would make
    /// the older secret invalid too early.
    pub fn with_new_secret(&self, secret: StoredSecret, now: DateTime<Utc>) -> Result<Self, DateTime<Utc>> {
        match self.previous_secret_until(now) {
            Some(until) => Err(until),
            None => {
                let previous_secret = now.checked_add_signed(SECRETS_OVERLAP).map(|until| (self.secret.clone(), until));
                Ok(Self { secret, previous_secret, ..self.clone() })
            }
        }
    }

    /// Returns the endpoint with the new signing secret `secret`, and without a previous secret, for stored secrets that
    /// cannot be decrypted.
    pub fn with_only_secret(&self, secret: StoredSecret) -> Self {
        Self { secret, previous_secret: None, ..self.clone() }
    }

    /// Returns whether a successful delivery at `now` must be stored, because it ends a series of failed tries, or
    /// because the stored time of the last success is at least an hour old.
    pub fn should_record_success(&self, now: DateTime<Utc>) -> bool {
        self.backoff != EndpointBackoff::default()
            || self.last_success_at.is_none_or(|at| now.signed_duration_since(at) >= SUCCESS_UPDATE_INTERVAL)
    }

    /// Returns the endpoint with `now` as the time of its last successful delivery, and without a back-off.
    pub fn with_success_at(&self, now: DateTime<Utc>) -> Self {
        Self { last_success_at: Some(now), backoff: EndpointBackoff::default(), ..self.clone() }
    }

    /// Returns whether no successful delivery at or after `at` is stored for the endpoint.
    pub fn has_no_success_since(&self, at: DateTime<Utc>) -> bool {
        self.last_success_at.is_none_or(|success| success < at)
    }

    /// Returns the endpoint as enabled and without a back-off, so that it is tried at once.
    pub fn enabled(&self) -> Self {
        Self { disabled_because: None, backoff: EndpointBackoff::default(), ..self.clone() }
    }

    /// Returns the endpoint with another URL, and without the back-off of the old URL.
    pub fn with_url(&self, url: EndpointUrl) -> Self {
        let backoff = if url == self.url { self.backoff } else { EndpointBackoff::default() };
        Self { url, backoff, ..self.clone() }
    }

    /// Returns the endpoint as disabled for the reason `because`. If the endpoint is already disabled, it keeps the
    /// earlier reason.
    pub fn disabled(&self, because: &str) -> Self {
        let because = self.disabled_because.clone().unwrap_or_else(|| because.to_owned());
        Self { disabled_because: Some(because), ..self.clone() }
    }
}
