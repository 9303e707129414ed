//! A daily execution: one execution of the AWS Step Functions state machine, which processes all shards of a batch for
//! one day. One or more invocations of the batch function walk each shard (process its rows); each invocation continues
//! where the previous invocation ended. This module contains the steps before and after these walks.

use std::num::NonZeroU32;

use chrono::TimeDelta;

use super::execution_messages::{BeginRequest, DailyExecutionError, ExecutionResult, ExecutionStart, FinishRequest};
use super::{BatchRequest, BatchTask, Sweep, SweepError};
use days::{DayRecords, ShardProof, ShardState};
use store::{ExecutionLeaseOutcome, Settings};

/// The longest duration of an invocation of the batch function: Lambda's limit.
pub(super) const MAX_INVOCATION_TIME: TimeDelta = TimeDelta::minutes(15);
/// The longest time between the end of an invocation of the batch function and the start of the next invocation.
const MAX_TIME_BETWEEN_INVOCATIONS: TimeDelta = TimeDelta::minutes(30);
/// The largest number of shards that the text about an incomplete day lists.
const MAX_LISTED_SHARDS: usize = 20;

impl<T: BatchTask> Sweep<T> {
    /// Begins a daily execution: acquires the batch's execution lease, and checks once whether the day may begin. If
    /// another execution has the lease, this execution does not begin. That is no error: the response contains the
    /// other execution's name, and the state machine tries again later.
    ///
    /// # Errors
    /// [`SweepError`] if a check fails, so that no row may be processed, or if a request to the table fails.
    pub(super) async fn begin_execution(
        &self,
        begin: &BeginRequest,
        settings: Settings,
    ) -> Result<ExecutionStart, SweepError> {
        let begun_at = self.clock.now();
        let request = BatchRequest::for_date(self.table.policy().date_at(begin.scheduled_time));
        let shards = self.check_request(&request, &settings).await?;
        let held_by = match self.acquire_lease(&begin.execution, Some(settings.shards)).await {
            Ok(_) => None,
            Err(SweepError::Execution(DailyExecutionError::HeldByOther { by, .. })) => Some(by),
            Err(error) => return Err(error),
        };
        if held_by.is_none()
            && let Err(error) = self.check_may_begin(&request, &settings, &shards).await
        {
            self.release_lease(&begin.execution).await?;
            return Err(error);
        }
        let count = u32::try_from(shards.len()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
        let at_once = begin.at_once.min(count);
        let lease_seconds = self.task.lease_duration().num_seconds();
        Ok(ExecutionStart { date: request.date, begun_at, shards, at_once, lease_seconds, held_by })
    }

    /// Acquires or renews the batch's execution lease for the daily execution `execution`. `shards` is the table's
    /// number of shards at the beginning of the execution, which is stored with the lease; `None` for a renewal.
    /// Returns the stored number.
    ///
    /// # Errors
    /// [`DailyExecutionError::HeldByOther`] if another daily execution has the lease.
    pub(super) async fn acquire_lease(&self, execution: &str, shards: Option<u32>) -> Result<Option<u32>, SweepError> {
        let (batch, now) = (Self::BATCH, self.clock.now());
        let until = now + MAX_INVOCATION_TIME + self.task.lease_duration() + MAX_TIME_BETWEEN_INVOCATIONS;
        match self.table.acquire_execution_lease(batch, execution, now, until, shards).await? {
            ExecutionLeaseOutcome::Acquired { shards } => Ok(shards),
            ExecutionLeaseOutcome::HeldByOther { by, until } => {
                Err(DailyExecutionError::HeldByOther { batch, by, until }.into())
            }
        }
    }

    /// Releases the batch's execution lease, if `execution` has it.
    async fn release_lease(&self, execution: &str) -> Result<(), SweepError> {
        Ok(self.table.release_execution_lease(Self::BATCH, execution).await?)
    }

    /// Decides from the run records whether the daily execution has completed its day. Releases the execution lease,
    /// unless the execution must wait and then process the shards again.
    pub(super) async fn finish_execution(
        &self,
        finish: &FinishRequest,
        settings: &Settings,
    ) -> Result<ExecutionResult, SweepError> {
        let all = settings.shards;
        let mut records = self.table.get_stored_runs(Self::BATCH, finish.date, None).await?.records;
        // Use only the run records of this execution as proof: rows may have become due after earlier runs of the day.
        records.retain(|record| record.started_at >= finish.begun_at);
        let day = DayRecords::new(Self::BATCH, finish.date, all, self.clock.now()).with_records(records);
        let shards = finish.shards.clone().unwrap_or_else(|| (0..all).collect());
        let proofs: Vec<ShardProof> = shards.into_iter().map(|shard| day.prove_shard(shard)).collect();
        let not_done: Vec<&ShardProof> = proofs.iter().filter(|proof| !proof.is_complete()).collect();
        let wait = !finish.has_waited && not_done.iter().any(|proof| may_be_settled_later(proof));
        if wait {
            self.acquire_lease(&finish.execution, None).await?;
        } else {
            self.release_lease(&finish.execution).await?;
        }
        let unresolved = self.task.unresolved_problem(&self.table).await?;
        let (date, done) = (finish.date, not_done.is_empty() && unresolved.is_none());
        let causes = [describe_shards_not_done(&not_done, proofs.len()), unresolved.unwrap_or_default()];
        let cause = causes.into_iter().filter(|cause| !cause.is_empty()).collect::<Vec<_>>().join("; ");
        if !done {
            tracing::error!(batch = %Self::BATCH, %date, %cause, wait, "the day is not done");
        }
        Ok(ExecutionResult { date, done, wait, cause })
    }
}

/// Returns whether processing the shard again may complete it, after the leases that workers have on its rows have
/// expired.
fn may_be_settled_later(proof: &ShardProof) -> bool {
    matches!(proof.walked, ShardState::LeftBehind | ShardState::Open) || proof.counts.in_doubt() > 0
}

/// Returns a text that lists the shards that are not done; empty if there are none. An example: `1 of 4 shards are not
/// done: shard 2 failed (timeout)`.
fn describe_shards_not_done(not_done: &[&ShardProof], shards: usize) -> String {
    if not_done.is_empty() {
        return String::new();
    }
    let describe = |proof: &&ShardProof| {
        let stopped = proof.stopped.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("shard {} {}{stopped}", proof.shard, proof.walked)
    };
    let mut listed: Vec<String> = not_done.iter().take(MAX_LISTED_SHARDS).map(describe).collect();
    if not_done.len() > listed.len() {
        listed.push(format!("{} more", not_done.len() - listed.len()));
    }
    format!("{} of {shards} shards are not done: {}", not_done.len(), listed.join(", "))
}

impl From<DailyExecutionError> for SweepError {
    fn from(error: DailyExecutionError) -> Self {
        SweepError::Execution(error)
    }
}
