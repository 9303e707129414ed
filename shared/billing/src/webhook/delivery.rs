//! Deliveries: one event on its way to one endpoint.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};
use ulid::Ulid;

/// From each try that failed to the next: three days in all (the schedule that the Standard Webhooks specification advises).
pub const GAPS: [TimeDelta; 9] = [
    TimeDelta::seconds(5),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(5),
    TimeDelta::hours(10),
    TimeDelta::hours(14),
    TimeDelta::hours(20),
    TimeDelta::hours(24),
];

/// What came of a delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It was taken: any status of 200 to 299.
    Taken(u16),
    /// It was answered with another status. A redirect is one of them.
    Refused(u16),
    /// There was no answer. It may have been taken.
    None(String),
}

/// Which delivery.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct DeliveryKey {
    pub endpoint: Ulid,
    /// The event's id.
    pub event: String,
}

/// How a delivery stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "`pending`: it is tried, or tried again. `delivered`: the endpoint has taken it. `failed`: it is not tried any more."
    )
)]
pub enum DeliveryStatus {
    /// It is tried, or tried again.
    Pending,
    /// The endpoint has taken it.
    Delivered,
    /// It is not tried any more.
    Failed,
}

/// An event on its way to an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    pub key: DeliveryKey,
    pub event_type: String,
    /// The event's JSON.
    pub body: String,
    pub status: DeliveryStatus,
    /// Tries so far, since it was last asked for.
    pub attempts: u32,
    /// What the last try came to: an HTTP status, or why there was no answer.
    pub last_answer: Option<String>,
    /// When it is tried next, while it is pending.
    pub next_try_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub version: u64,
}

impl Delivery {
    /// The first delivery of an event.
    pub fn new(key: DeliveryKey, event_type: String, body: String, now: DateTime<Utc>) -> Self {
        Self {
            key,
            event_type,
            body,
            status: DeliveryStatus::Pending,
            attempts: 0,
            last_answer: None,
            next_try_at: Some(now),
            created_at: now,
            version: 1,
        }
    }

    /// It, after a try at `now` that came to `answer`.
    pub fn tried(&self, answer: &Answer, now: DateTime<Utc>) -> Self {
        let (last_answer, is_taken) = match answer {
            Answer::Taken(status) => (status.to_string(), true),
            Answer::Refused(status) => (status.to_string(), false),
            Answer::None(reason) => (reason.clone(), false),
        };
        let gap = GAPS.get(self.attempts as usize).filter(|_| !is_taken);
        let status = match (is_taken, gap) {
            (true, _) => DeliveryStatus::Delivered,
            (false, Some(_)) => DeliveryStatus::Pending,
            (false, None) => DeliveryStatus::Failed,
        };
        Self {
            status,
            attempts: self.attempts.saturating_add(1),
            last_answer: Some(last_answer),
            next_try_at: gap.and_then(|gap| now.checked_add_signed(*gap)),
            ..self.clone()
        }
    }

    /// It, given up because of `reason`.
    pub fn given_up(&self, reason: &str) -> Self {
        let last_answer = Some(reason.to_owned());
        Self { status: DeliveryStatus::Failed, last_answer, next_try_at: None, ..self.clone() }
    }

    /// It, asked for again at `now`.
    pub fn again(&self, now: DateTime<Utc>) -> Self {
        Self { status: DeliveryStatus::Pending, attempts: 0, next_try_at: Some(now), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tried_waits_longer_each_time_and_gives_up_after_three_days() {
        let begun = DateTime::UNIX_EPOCH;
        let key = DeliveryKey { endpoint: Ulid::nil(), event: "1".to_owned() };
        let (mut delivery, mut waits) = (Delivery::new(key, "account.created".into(), "{}".into(), begun), Vec::new());
        let mut now = begun;
        while let Some(next) = delivery.next_try_at {
            waits.push((next - now).num_seconds());
            now = next;
            delivery = delivery.tried(&Answer::Refused(500), now);
        }
        assert_eq!(waits, [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
        assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Failed, 10));
        assert!((now - begun) > TimeDelta::days(3) && (now - begun) < TimeDelta::days(4));

        let again = delivery.again(now);
        assert_eq!((again.status, again.attempts, again.next_try_at), (DeliveryStatus::Pending, 0, Some(now)));
        let taken = again.tried(&Answer::Taken(204), now);
        assert_eq!(
            (taken.status, taken.next_try_at, taken.last_answer.as_deref()),
            (DeliveryStatus::Delivered, None, Some("204"))
        );
    }
}
