//! What a state machine asks of a batch before it walks the shards and after, and what the batch responds.

use std::num::NonZeroU32;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use store::Batch;

use super::{BatchRequest, RequestError};

/// The beginning of an execution: it is the only one of its batch until it has ended, or its lease has lapsed.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begin {
    /// Whose day it is, in the billing time zone.
    pub scheduled_time: DateTime<Utc>,
    /// What the execution is called.
    pub execution: String,
    /// At most this many shards are walked at the same time.
    pub at_once: NonZeroU32,
}

/// What is to be walked, and how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Begun {
    pub date: NaiveDate,
    pub begun_at: DateTime<Utc>,
    pub shards: Vec<u32>,
    /// How many of them are walked at the same time.
    pub at_once: NonZeroU32,
    /// How long a claimed row belongs to its worker.
    pub lease_seconds: i64,
    /// Another execution that goes on, or was cut off and keeps its lease: this one has not begun, and asks again later.
    pub held_by: Option<String>,
}

/// The end of an execution, or of its first half.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    pub date: NaiveDate,
    pub begun_at: DateTime<Utc>,
    pub execution: String,
    /// Whether a lease was waited for already.
    pub has_waited: bool,
    /// The shards that it was to walk; all that there are now if absent, as an older state machine leaves it.
    #[serde(default)]
    pub shards: Option<Vec<u32>>,
}

/// What the run records prove of the day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finished {
    pub date: NaiveDate,
    /// Every shard was walked to its end, and nothing was left or rejected.
    pub done: bool,
    /// Rows were left under a lease: the execution goes on, waits until it has lapsed and walks once more.
    pub wait: bool,
    /// Why the day is not done, for people; empty if it is.
    pub cause: String,
}

/// Why an execution must not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionError {
    #[error("execution {by} of {batch} goes on, or was cut off: its lease lasts until {until}")]
    Held { batch: Batch, by: String, until: DateTime<Utc> },
}

impl Begin {
    /// The billing date of the day.
    pub(super) fn date(&self, zone: Tz) -> NaiveDate {
        self.scheduled_time.with_timezone(&zone).date_naive()
    }
}

/// What a batch function is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    Begin(Begin),
    Walk(BatchRequest),
    Finish(Finish),
}

impl Asked {
    /// Reads `event`.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn read(event: serde_json::Value, zone: Tz) -> Result<Self, RequestError> {
        if event.get("begin").is_none() && event.get("finish").is_none() {
            return BatchRequest::from_event(event, zone).map(Self::Walk);
        }
        match serde_json::from_value(event) {
            Ok(OfExecution::Begin(begin)) => Ok(Self::Begin(begin)),
            Ok(OfExecution::Finish(finish)) => Ok(Self::Finish(finish)),
            Err(error) => Err(RequestError::Unknown(error.to_string())),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OfExecution {
    Begin(Begin),
    Finish(Finish),
}
