//! The events that start a batch: an EventBridge scheduled event, an EventBridge Scheduler payload, or an explicit
//! request.

use std::num::NonZeroU32;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use store::DueIndexPosition;

/// A request for a run: process the rows of some shards that are due on or before a date.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    #[serde(deserialize_with = "billing::deserialize_date")]
    pub date: NaiveDate,
    /// The shards to process; `None` for all shards.
    #[serde(default)]
    pub shards: Option<Vec<u32>>,
    /// The position from which the run continues, from the report of an earlier run; `None` to start at the beginning.
    #[serde(default)]
    pub next: Option<DueIndexPosition>,
    /// The number of concurrent runs, including this run. All concurrent runs share the allowed rate of requests to the
    /// gateway. `None` means 1.
    #[serde(default)]
    pub at_once: Option<NonZeroU32>,
    /// The name of the daily execution to which this run belongs, if any. The run renews the lease of that execution.
    #[serde(default)]
    pub execution: Option<String>,
}

/// An EventBridge scheduled event, as a schedule sends it. An event without one of the required fields is not valid.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ScheduledEvent {
    detail_type: String,
    time: Option<DateTime<Utc>>,
    #[expect(dead_code, reason = "the field is only required")]
    source: IgnoredAny,
    #[expect(dead_code, reason = "the field is only required")]
    detail: IgnoredAny,
}

/// The reason why an event was rejected before anything was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchRequestError {
    #[error("{field} in the event must be a time like 2026-03-31T06:00:00Z, not {found}")]
    Time { field: &'static str, found: String },
    #[error("detail-type must be \"Scheduled Event\", not {found:?}")]
    DetailType { found: String },
    #[error("shards must contain at least one shard; without shards, all shards are processed")]
    NoShards,
    #[error(
        "the event is not valid: {0}. Valid events are an EventBridge scheduled event, {{\"scheduled_time\"}}, or {{\"date\", \
         \"shards\", \"next\"}}"
    )]
    Unknown(String),
}

impl BatchRequest {
    /// Creates a request for all rows that are due on or before `date`.
    pub fn for_date(date: NaiveDate) -> Self {
        Self { date, shards: None, next: None, at_once: None, execution: None }
    }

    /// Returns the number of concurrent runs, including this run.
    pub(super) fn concurrent_runs(&self) -> NonZeroU32 {
        self.at_once.unwrap_or(NonZeroU32::MIN)
    }

    /// Reads the request from `event`. The date of a scheduled event is the date of its *scheduled* time in `zone`,
    /// even if the event arrives late.
    pub fn from_event(event: Value, zone: Tz) -> Result<Self, BatchRequestError> {
        let on = |instant: DateTime<Utc>| Self::for_date(instant.with_timezone(&zone).date_naive());
        if let Some(time) = event.get("scheduled_time") {
            let instant = time.as_str().and_then(|text| text.parse().ok());
            let wrong = || BatchRequestError::Time { field: "scheduled_time", found: time.to_string() };
            return instant.map(on).ok_or_else(wrong);
        }
        if event.get("detail-type").is_none() {
            return serde_json::from_value(event).map_err(|error| BatchRequestError::Unknown(error.to_string()));
        }
        let event: ScheduledEvent =
            serde_json::from_value(event).map_err(|error| BatchRequestError::Unknown(error.to_string()))?;
        if event.detail_type != "Scheduled Event" {
            return Err(BatchRequestError::DetailType { found: event.detail_type });
        }
        event.time.map(on).ok_or_else(|| BatchRequestError::Time { field: "time", found: "absent".to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the date of the request that is read from `event`, or the error message.
    fn date_of_event(event: Value, zone: Tz) -> Result<String, String> {
        BatchRequest::from_event(event, zone).map(|request| request.date.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn from_event_uses_the_date_of_the_scheduled_time_in_the_billing_time_zone() {
        let event =
            |time: &str| json!({"detail-type": "Scheduled Event", "source": "aws.events", "time": time, "detail": {}});
        // The columns are: the scheduled time, the billing time zone, and the expected date of the request.
        for (time, zone, expected) in [
            ("2026-03-31T06:00:00Z", Tz::UTC, "2026-03-31"),
            ("2026-03-31T22:30:00Z", Tz::Europe__Berlin, "2026-04-01"),
            ("2026-01-01T03:00:00Z", Tz::America__New_York, "2025-12-31"),
            ("2026-03-31T12:00:00Z", Tz::Pacific__Kiritimati, "2026-04-01"),
        ] {
            assert_eq!(date_of_event(event(time), zone), Ok(expected.to_owned()), "{time} {zone}");
            assert_eq!(date_of_event(json!({"scheduled_time": time}), zone), Ok(expected.to_owned()), "{time} {zone}");
        }
    }

    #[test]
    fn from_event_rejects_invalid_events_and_names_the_cause() {
        // The columns are: the invalid event, and a part of the expected message.
        for (event, expected) in [
            (json!({"date": "2026-02-30"}), "must be a date like 2027-01-31: year, month, day"),
            (json!({"date": "2026-02-28", "shard": 1}), "shard"),
            (json!({"scheduled_time": "yesterday"}), "scheduled_time in the event must be a time"),
            (
                json!({"detail-type": "Object Created", "source": "aws.s3", "time": "2026-03-31T06:00:00Z", "detail": {}}),
                "detail-type must be",
            ),
            (
                json!({"detail-type": "Scheduled Event", "source": "aws.events", "detail": {}}),
                "time in the event must be a time",
            ),
            (json!({"detail-type": "Scheduled Event"}), "the event is not valid"),
            (json!([]), "the event is not valid"),
        ] {
            let error = date_of_event(event.clone(), Tz::UTC).unwrap_err();
            assert!(error.contains(expected), "{event}: {error}");
        }
    }
}
