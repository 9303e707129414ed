//! A daily execution: what a state machine asks of a batch before it walks the shards, and after. In between, each shard
//! is walked by invocations that go on where the one before ended.

use std::num::NonZeroU32;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use super::{BatchRequest, RequestError, Sweep, SweepError, Task};
use days::{DayRecords, ShardProof, Walked};
use store::{Batch, Paging, Taken};

/// No invocation goes on for longer: Lambda's limit.
pub(super) const LONGEST_INVOCATION: TimeDelta = TimeDelta::minutes(15);
/// What an execution needs besides, between one invocation and the next.
const BETWEEN_INVOCATIONS: TimeDelta = TimeDelta::minutes(30);
/// At most this many shards are named when a day is not done.
const MAX_SHARDS_NAMED: usize = 20;

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
    fn date(&self, zone: Tz) -> NaiveDate {
        self.scheduled_time.with_timezone(&zone).date_naive()
    }
}

impl<T: Task> Sweep<T> {
    /// Begins an execution: takes the batch's lease, and asks once for the whole day whether it may be begun. While another
    /// execution has the lease, it does not begin, which is no failure: it asks again later.
    ///
    /// # Errors
    /// [`SweepError`]: nothing must be walked then.
    pub(super) async fn begin(&self, begin: &Begin) -> Result<Begun, SweepError> {
        let begun_at = self.clock.now();
        let request = BatchRequest::on(begin.date(self.limits.zone));
        let (all, shards) = self.check(&request).await?;
        let held_by = match self.hold(&begin.execution, Some(all)).await {
            Ok(_) => None,
            Err(SweepError::Execution(ExecutionError::Held { by, .. })) => Some(by),
            Err(error) => return Err(error),
        };
        if held_by.is_none()
            && let Err(error) = self.may_begin(&request, all, &shards).await
        {
            self.release(&begin.execution).await?;
            return Err(error);
        }
        let count = u32::try_from(shards.len()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
        let at_once = begin.at_once.min(count);
        let lease_seconds = self.task.lease().num_seconds();
        Ok(Begun { date: request.date, begun_at, shards, at_once, lease_seconds, held_by })
    }

    /// Takes the lease of the batch for `execution`, or renews it. One that begins says how many `shards` there are;
    /// returns what it has said.
    pub(super) async fn hold(&self, execution: &str, shards: Option<u32>) -> Result<Option<u32>, SweepError> {
        let (batch, now) = (Self::BATCH, self.clock.now());
        let until = now + LONGEST_INVOCATION + self.task.lease() + BETWEEN_INVOCATIONS;
        match self.table.take_execution(batch, execution, now, until, shards).await? {
            Taken::Ours { shards } => Ok(shards),
            Taken::Held { by, until } => Err(ExecutionError::Held { batch, by, until }.into()),
        }
    }

    async fn release(&self, execution: &str) -> Result<(), SweepError> {
        Ok(self.table.release_execution(Self::BATCH, execution, self.clock.now()).await?)
    }

    /// Judges the execution by its run records, and gives the lease back unless the execution is to go on.
    ///
    /// # Errors
    /// [`SweepError`].
    pub(super) async fn finish(&self, finish: &Finish) -> Result<Finished, SweepError> {
        let all = self.settings().await?.shards;
        let mut records = self.table.get_runs_by_date(Self::BATCH, finish.date, &Paging::all()).await?.items;
        // What earlier runs of the day have walked says nothing of what is due by now.
        records.retain(|record| record.started_at >= finish.begun_at);
        let day = DayRecords::new(Self::BATCH, finish.date, all, self.clock.now()).with(records);
        let shards = finish.shards.clone().unwrap_or_else(|| (0..all).collect());
        let proofs: Vec<ShardProof> = shards.into_iter().map(|shard| day.prove_shard(shard)).collect();
        let open: Vec<&ShardProof> = proofs.iter().filter(|proof| !proof.holds()).collect();
        let wait = !finish.has_waited && open.iter().any(|proof| is_left_open(proof));
        if wait {
            self.hold(&finish.execution, None).await?;
        } else {
            self.release(&finish.execution).await?;
        }
        let unresolved = self.task.unresolved(&self.table).await?;
        let (date, done) = (finish.date, open.is_empty() && unresolved.is_none());
        let causes = [cause(&open, proofs.len()), unresolved.unwrap_or_default()];
        let cause = causes.into_iter().filter(|cause| !cause.is_empty()).collect::<Vec<_>>().join("; ");
        if !done {
            tracing::error!(batch = %Self::BATCH, %date, %cause, wait, "the day is not done");
        }
        Ok(Finished { date, done, wait, cause })
    }
}

/// Whether what keeps the shard's day from being done may be settled when a lease has lapsed.
fn is_left_open(proof: &ShardProof) -> bool {
    matches!(proof.walked, Walked::LeftBehind | Walked::Open) || proof.counts.in_doubt() > 0
}

fn cause(open: &[&ShardProof], shards: usize) -> String {
    if open.is_empty() {
        return String::new();
    }
    let said = |proof: &&ShardProof| {
        let stopped = proof.stopped.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("shard {} {}{stopped}", proof.shard, proof.walked)
    };
    let mut named: Vec<String> = open.iter().take(MAX_SHARDS_NAMED).map(said).collect();
    if open.len() > named.len() {
        named.push(format!("{} more", open.len() - named.len()));
    }
    format!("{} of {shards} shards are not done: {}", open.len(), named.join(", "))
}

impl From<ExecutionError> for SweepError {
    fn from(error: ExecutionError) -> Self {
        SweepError::Execution(error)
    }
}

/// What a batch function is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    Begin(Begin),
    Walk(BatchRequest),
    Finish(Finish),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OfExecution {
    Begin(Begin),
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
