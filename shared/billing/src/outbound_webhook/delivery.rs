//! The delivery of an event to a webhook endpoint, with its retries.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};
use ulid::Ulid;

use crate::outbound_webhook::retry_schedule::{MAX_DELIVERY_AGE, MAX_RETRY_AFTER, RETRY_DELAYS};

/// The status with which an endpoint reports that it wants no more events ("410 Gone" in the Standard Webhooks
/// specification).
const GONE: u16 = 410;

/// The result of one try to send an event to an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeliveryResponse {
    /// The endpoint responded with a status from 200 to 299.
    Accepted(u16),
    /// The endpoint responded with another status, for example a redirect.
    Rejected {
        /// The HTTP status.
        status: u16,
        /// The time to wait until the next request, from the header `Retry-After`; `None` without this header.
        retry_after: Option<TimeDelta>,
    },
    /// There was no response. Contains the reason. The endpoint may have processed the event nevertheless.
    NoResponse(String),
}

impl DeliveryResponse {
    /// Returns whether the endpoint wants no more events, so that it must be disabled.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Rejected { status: GONE, .. })
    }

    /// Returns the time before which the endpoint wants no request: the time that the header `Retry-After` requests
    /// after `now`, but at most [`MAX_RETRY_AFTER`]. Returns `None` if the endpoint requests no time.
    pub fn not_before(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Rejected { retry_after: Some(wait), .. } => now.checked_add_signed((*wait).min(MAX_RETRY_AFTER)),
            _ => None,
        }
    }
}

/// Identifies the delivery of one event to one endpoint.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct DeliveryKey {
    pub endpoint: Ulid,
    /// The id of the event.
    pub event: String,
}

/// Whether a delivery waits for a try, has succeeded or has failed for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "The status of a delivery. `pending`: the event will be sent, or sent again. `delivered`: the \
            endpoint accepted the event. `failed`: there are no more retries."
    )
)]
pub enum DeliveryStatus {
    /// The event will be sent, or sent again.
    Pending,
    /// The endpoint accepted the event.
    Delivered,
    /// There are no more retries.
    Failed,
}

/// The delivery of an event to an endpoint, with the state of its tries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    pub key: DeliveryKey,
    pub event_type: String,
    /// The event as JSON, which is sent as the body of the request.
    pub body: String,
    pub status: DeliveryStatus,
    /// The number of tries since the delivery was created or last restarted.
    pub attempts: u32,
    /// The result of the last try: an HTTP status, or the reason why there was no response.
    pub last_response: Option<String>,
    /// The time of the next try; `None` if the delivery is not pending.
    pub next_try_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    /// When the delivery was last restarted to send the event again; `None` if the delivery was never restarted.
    pub restarted_at: Option<DateTime<Utc>>,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

impl Delivery {
    /// Creates a pending delivery whose first try is due at `now`.
    pub fn new(key: DeliveryKey, event_type: String, body: String, now: DateTime<Utc>) -> Self {
        Self {
            key,
            event_type,
            body,
            status: DeliveryStatus::Pending,
            attempts: 0,
            last_response: None,
            next_try_at: Some(now),
            created_at: now,
            restarted_at: None,
            version: 1,
        }
    }

    /// Returns the delivery after a try at `now` that had the result `response`. The next try is not before the time
    /// that the endpoint requests. If the endpoint wants no more events, the delivery has failed.
    pub fn after_attempt(&self, response: &DeliveryResponse, now: DateTime<Utc>) -> Self {
        let (last_response, is_accepted) = match response {
            DeliveryResponse::Accepted(status) => (status.to_string(), true),
            DeliveryResponse::Rejected { status, .. } => (status.to_string(), false),
            DeliveryResponse::NoResponse(reason) => (reason.clone(), false),
        };
        let has_next_try = !is_accepted && !response.is_gone() && !self.is_too_old(now);
        let gap = RETRY_DELAYS.get(self.attempts as usize).filter(|_| has_next_try);
        let status = match (is_accepted, gap) {
            (true, _) => DeliveryStatus::Delivered,
            (false, Some(_)) => DeliveryStatus::Pending,
            (false, None) => DeliveryStatus::Failed,
        };
        Self {
            status,
            attempts: self.attempts.saturating_add(1),
            last_response: Some(last_response),
            next_try_at: gap
                .and_then(|gap| now.checked_add_signed(*gap))
                .max(response.not_before(now).filter(|_| gap.is_some())),
            ..self.clone()
        }
    }

    /// Returns the delivery as permanently failed, so that the event is not sent again. `reason` is stored in the field
    /// `last_response`.
    pub fn abandoned(&self, reason: &str) -> Self {
        let last_response = Some(reason.to_owned());
        Self { status: DeliveryStatus::Failed, last_response, next_try_at: None, ..self.clone() }
    }

    /// Returns the delivery as pending again, due at `now`, with a new schedule of retries.
    pub fn restarted(&self, now: DateTime<Utc>) -> Self {
        Self {
            status: DeliveryStatus::Pending,
            attempts: 0,
            next_try_at: Some(now),
            restarted_at: Some(now),
            ..self.clone()
        }
    }

    /// Returns the time of the last restart of the delivery. If the delivery was never restarted, returns the time of
    /// its creation.
    pub fn started_at(&self) -> DateTime<Utc> {
        self.restarted_at.unwrap_or(self.created_at)
    }

    /// Returns whether the delivery must not be postponed again at `now`, because its age exceeds [`MAX_DELIVERY_AGE`].
    pub fn is_too_old(&self, now: DateTime<Utc>) -> bool {
        now.signed_duration_since(self.started_at()) > MAX_DELIVERY_AGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A response with the status 500 and without the header `Retry-After`.
    const ERROR: DeliveryResponse = DeliveryResponse::Rejected { status: 500, retry_after: None };

    #[test]
    fn delivery_waits_longer_after_each_failed_try_and_fails_after_three_days() {
        let begun = DateTime::UNIX_EPOCH;
        let key = DeliveryKey { endpoint: Ulid::nil(), event: "1".to_owned() };
        let (mut delivery, mut waits) = (Delivery::new(key, "account.created".into(), "{}".into(), begun), Vec::new());
        let mut now = begun;
        while let Some(next) = delivery.next_try_at {
            waits.push((next - now).num_seconds());
            now = next;
            delivery = delivery.after_attempt(&ERROR, now);
        }
        assert_eq!(waits, [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
        assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Failed, 10));
        assert!((now - begun) > TimeDelta::days(3) && (now - begun) < TimeDelta::days(4));

        let long_ago = Delivery { attempts: 2, status: DeliveryStatus::Pending, ..delivery.clone() };
        let late = begun + MAX_DELIVERY_AGE + TimeDelta::seconds(1);
        let failed = |now| long_ago.after_attempt(&ERROR, now).status;
        assert_eq!(failed(begun + MAX_DELIVERY_AGE), DeliveryStatus::Pending);
        assert_eq!(failed(late), DeliveryStatus::Failed, "after four days there is no further try");
        assert!(!long_ago.restarted(late).is_too_old(late), "the age is counted from the restart");

        let again = delivery.restarted(now);
        assert_eq!((again.status, again.attempts, again.next_try_at), (DeliveryStatus::Pending, 0, Some(now)));
        let taken = again.after_attempt(&DeliveryResponse::Accepted(204), now);
        assert_eq!(
            (taken.status, taken.next_try_at, taken.last_response.as_deref()),
            (DeliveryStatus::Delivered, None, Some("204"))
        );
    }

    #[test]
    fn next_try_is_not_before_the_time_that_the_endpoint_requests_and_410_ends_the_delivery() {
        let now = DateTime::UNIX_EPOCH;
        let key = DeliveryKey { endpoint: Ulid::nil(), event: "1".to_owned() };
        let delivery = Delivery::new(key, "account.created".into(), "{}".into(), now);
        let after = |status, seconds: Option<i64>| {
            let retry_after = seconds.map(TimeDelta::seconds);
            let tried = delivery.after_attempt(&DeliveryResponse::Rejected { status, retry_after }, now);
            (tried.status, tried.next_try_at.map(|next| (next - now).num_seconds()))
        };
        for (seconds, expected) in [(None, 5), (Some(0), 5), (Some(4), 5), (Some(120), 120), (Some(1_000_000), 86_400)]
        {
            assert_eq!(after(429, seconds), (DeliveryStatus::Pending, Some(expected)), "{seconds:?}");
        }
        assert_eq!(after(410, Some(120)), (DeliveryStatus::Failed, None));
    }
}
