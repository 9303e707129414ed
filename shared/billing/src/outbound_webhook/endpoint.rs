//! The webhook endpoints of the merchant: the URLs to which Dueday sends events.

use chrono::{DateTime, TimeDelta, Utc};
use ulid::Ulid;

use crate::event::EventType;
use crate::outbound_webhook::endpoint_backoff::EndpointBackoff;
use crate::outbound_webhook::endpoint_url::EndpointUrl;
use crate::outbound_webhook::signing_secret::StoredSecret;

/// How long the old signing secret of a webhook endpoint stays valid after it was replaced, so that the merchant has
/// time to configure the new secret.
pub const SECRETS_OVERLAP: TimeDelta = TimeDelta::hours(24);

/// The minimum time between two updates of an endpoint's stored time of the last success. Because of this limit, not
/// every delivery writes the item of the endpoint.
const SUCCESS_UPDATE_INTERVAL: TimeDelta = TimeDelta::hours(1);

/// A webhook endpoint: a program of the merchant that receives events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookEndpoint {
    pub id: Ulid,
    pub url: EndpointUrl,
    /// The types of events that the endpoint receives; empty if the endpoint receives all types.
    pub types: Vec<EventType>,
    /// The reason why the endpoint is disabled; `None` while it is enabled.
    pub disabled_because: Option<String>,
    pub secret: StoredSecret,
    /// The old secret that was replaced last, and the end of its validity; `None` if there is no old secret.
    pub previous_secret: Option<(StoredSecret, DateTime<Utc>)>,
    /// When the endpoint last accepted an event; `None` if the endpoint has never accepted an event. This time may be
    /// up to an hour too early, because the stored time is updated at most once an hour.
    pub last_success_at: Option<DateTime<Utc>>,
    /// The failed tries since the last success, and the time until which no event is sent to the endpoint.
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

    /// Returns the old signing secret that was replaced last; `None` if there is none, or if it is not valid any more
    /// at `now`.
    pub fn valid_previous_secret(&self, now: DateTime<Utc>) -> Option<&StoredSecret> {
        self.previous_secret.as_ref().filter(|(_, until)| now < *until).map(|(secret, _)| secret)
    }

    /// Returns when the old signing secret expires; `None` if no secret was replaced, or if the old secret is not valid
    /// any more at `now`.
    pub fn previous_secret_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.previous_secret.as_ref().map(|(_, until)| *until).filter(|until| now < *until)
    }

    /// Returns the endpoint with the new signing secret `secret`. The old secret stays valid for [`SECRETS_OVERLAP`].
    ///
    /// # Errors
    /// If the endpoint already has two valid secrets, returns the time at which the older secret expires. At most two
    /// secrets can be stored, so a third secret would make the older secret invalid too early.
    pub fn with_new_secret(&self, secret: StoredSecret, now: DateTime<Utc>) -> Result<Self, DateTime<Utc>> {
        match self.previous_secret_until(now) {
            Some(until) => Err(until),
            None => {
                let previous_secret = now.checked_add_signed(SECRETS_OVERLAP).map(|until| (self.secret.clone(), until));
                Ok(Self { secret, previous_secret, ..self.clone() })
            }
        }
    }

    /// Returns the endpoint with the new signing secret `secret`, and without an old secret. This is used if the stored
    /// secrets cannot be decrypted any more.
    pub fn with_only_secret(&self, secret: StoredSecret) -> Self {
        Self { secret, previous_secret: None, ..self.clone() }
    }

    /// Returns whether a successful delivery at `now` must be stored in the item of the endpoint. This is so if the
    /// success ends a series of failed tries, or if the stored time of the last success is absent or at least an hour
    /// old.
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

    /// Returns the endpoint as enabled and without a back-off, so that events are sent to it at once.
    pub fn enabled(&self) -> Self {
        Self { disabled_because: None, backoff: EndpointBackoff::default(), ..self.clone() }
    }

    /// Returns the endpoint with the URL `url`. If the URL has changed, the back-off of the old URL is removed.
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
