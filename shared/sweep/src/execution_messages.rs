//! The requests that the state machine sends to a batch function before and after the walks over the shards, and the
//! batch function's responses. A walk processes the rows of one shard.

use std::num::NonZeroU32;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use store::Batch;

use super::{BatchRequest, BatchRequestError};

/// A request to begin a daily execution of a batch. No other execution of the batch can begin until the requested
/// execution has ended or its lease has expired.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeginRequest {
    /// The time for which the execution was scheduled. Its date in the billing time zone is the date of the execution.
    pub scheduled_time: DateTime<Utc>,
    /// The name of the daily execution.
    pub execution: String,
    /// The largest number of shards that are processed at the same time.
    pub at_once: NonZeroU32,
}

/// The response to a [`BeginRequest`]: the shards whose rows must be processed, and how many shards at the same time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExecutionStart {
    /// The date of the execution in the billing time zone.
    pub date: NaiveDate,
    /// The time at which the execution began. Run records that began at or after this time belong to this execution.
    pub begun_at: DateTime<Utc>,
    pub shards: Vec<u32>,
    /// The number of shards that are processed at the same time.
    pub at_once: NonZeroU32,
    /// How long a worker's lease of a row lasts, in seconds. The state machine waits for this time before it lets the
    /// batch function process the shards again.
    pub lease_seconds: i64,
    /// The name of another execution that has the execution lease, because it is running or was cut off; `None` if this
    /// execution has begun. If there is a name, this execution has not begun, and the state machine tries again later.
    pub held_by: Option<String>,
}

/// A request to finish a daily execution. The state machine sends it after all walks of the execution (a walk processes
/// the rows of one shard).
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinishRequest {
    /// The date from [`ExecutionStart::date`].
    pub date: NaiveDate,
    /// The time from [`ExecutionStart::begun_at`].
    pub begun_at: DateTime<Utc>,
    /// The name of the daily execution.
    pub execution: String,
    /// Whether this execution has already waited until the leases of its rows expired, and has then processed the
    /// shards a second time.
    pub has_waited: bool,
    /// The shards whose rows the execution had to process. `None` in requests of older state machines; it then means
    /// all shards of the table.
    #[serde(default)]
    pub shards: Option<Vec<u32>>,
}

/// The result of a daily execution, computed from its run records.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExecutionResult {
    pub date: NaiveDate,
    /// Whether the day is done: all rows of every shard were read, no row was left unfinished or rejected, and a person
    /// has nothing to resolve.
    pub done: bool,
    /// Whether other workers' leases still blocked some rows. If so, the execution must wait until these leases have
    /// expired, and then process the shards once more.
    pub wait: bool,
    /// The reason why the day is not done, as text for a person; empty if the day is done.
    pub cause: String,
}

/// The reason why a daily execution must not begin or continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DailyExecutionError {
    #[error("the daily execution {by} of the {batch} batch has the lease until {until}: it is running or was cut off")]
    HeldByOther { batch: Batch, by: String, until: DateTime<Utc> },
}

/// The request with which a batch function is invoked: to begin a daily execution, to walk shards (to process their
/// rows), or to finish a daily execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum FunctionRequest {
    Begin(BeginRequest),
    Walk(BatchRequest),
    Finish(FinishRequest),
}

impl FunctionRequest {
    /// Reads the request from the `event` with which the batch function was invoked.
    pub fn read(event: serde_json::Value, zone: Tz) -> Result<Self, BatchRequestError> {
        if event.get("begin").is_none() && event.get("finish").is_none() {
            return BatchRequest::from_event(event, zone).map(Self::Walk);
        }
        match serde_json::from_value(event) {
            Ok(ExecutionRequest::Begin(begin)) => Ok(Self::Begin(begin)),
            Ok(ExecutionRequest::Finish(finish)) => Ok(Self::Finish(finish)),
            Err(error) => Err(BatchRequestError::Unknown(error.to_string())),
        }
    }
}

/// The JSON of the two requests that have a name: `begin` and `finish`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExecutionRequest {
    Begin(BeginRequest),
    Finish(FinishRequest),
}
