//! What starts a batch: an EventBridge scheduled event, an EventBridge Scheduler payload, or an explicit request.

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use serde::Deserialize;
use serde_json::Value;

use crate::table::Position;

/// Which day to sweep, which shards of it, and where to go on.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    pub date: NaiveDate,
    /// All shards if absent.
    #[serde(default)]
    pub shards: Option<Vec<u32>>,
    /// The position an earlier invocation answered.
    #[serde(default)]
    pub next: Option<Position>,
}

/// Why an event was refused. Nothing has been done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the event's {field} {reason}")]
    Event { field: &'static str, reason: String },
    #[error(
        "not an event this function knows: {0}. It takes an EventBridge scheduled event, {{\"scheduled_time\"}} or {{\"date\", \"shards\", \"next\"}}"
    )]
    Unknown(String),
}

impl BatchRequest {
    /// Everything due on or before `date`.
    pub fn on(date: NaiveDate) -> Self {
        Self { date, shards: None, next: None }
    }

    /// Reads `event`. A scheduled event's day is the day of its *scheduled* time in `zone`, however late it arrives.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn from_event(event: Value, zone: Tz) -> Result<Self, RequestError> {
        let scheduled = |field: &'static str, value: &Value| {
            let text = value.as_str().unwrap_or_default();
            let instant: DateTime<Utc> = text.parse().map_err(|_| RequestError::Event {
                field,
                reason: format!("must be an instant like 2026-03-31T06:00:00Z, not {value}"),
            })?;
            Ok(Self::on(instant.with_timezone(&zone).date_naive()))
        };
        match (event.get("scheduled_time"), event.get("detail-type")) {
            (Some(time), _) => scheduled("scheduled_time", time),
            (None, Some(kind)) if kind == "Scheduled Event" => {
                scheduled("time", event.get("time").unwrap_or(&Value::Null))
            }
            (None, Some(kind)) => Err(RequestError::Event {
                field: "detail-type",
                reason: format!("must be \"Scheduled Event\", not {kind}"),
            }),
            (None, None) => serde_json::from_value(event).map_err(|error| RequestError::Unknown(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn date(event: Value, zone: Tz) -> Result<String, String> {
        BatchRequest::from_event(event, zone).map(|request| request.date.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn today_is_the_scheduled_times_date_in_the_billing_time_zone() {
        let event =
            |time: &str| json!({"detail-type": "Scheduled Event", "source": "aws.events", "time": time, "detail": {}});
        for (time, zone, expected) in [
            ("2026-03-31T06:00:00Z", Tz::UTC, "2026-03-31"),
            ("2026-03-31T22:30:00Z", Tz::Europe__Berlin, "2026-04-01"),
            ("2026-01-01T03:00:00Z", Tz::America__New_York, "2025-12-31"),
            ("2026-03-31T12:00:00Z", Tz::Pacific__Kiritimati, "2026-04-01"),
        ] {
            assert_eq!(date(event(time), zone), Ok(expected.to_owned()), "{time} {zone}");
            assert_eq!(date(json!({"scheduled_time": time}), zone), Ok(expected.to_owned()), "{time} {zone}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_is_allowed() {
        for (event, said) in [
            (json!({"date": "2026-02-30"}), "date"),
            (json!({"date": "2026-02-28", "shard": 1}), "shard"),
            (json!({"scheduled_time": "yesterday"}), "scheduled_time must be an instant"),
            (json!({"detail-type": "Object Created"}), "detail-type must be"),
            (json!({"detail-type": "Scheduled Event"}), "time must be an instant"),
            (json!([]), "not an event"),
        ] {
            let error = date(event.clone(), Tz::UTC).unwrap_err();
            assert!(error.contains(said), "{event}: {error}");
        }
    }
}
