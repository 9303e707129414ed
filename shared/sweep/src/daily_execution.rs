//! A daily execution: what a state machine asks of a batch before it walks the shards, and after. In between, each shard
//! is walked by invocations that go on where the one before ended.

use std::num::NonZeroU32;

use chrono::TimeDelta;

use super::execution_messages::{Begin, Begun, ExecutionError, Finish, Finished};
use super::{BatchRequest, Sweep, SweepError, Task};
use days::{DayRecords, ShardProof, Walked};
use store::{Paging, Taken};

/// No invocation goes on for longer: Lambda's limit.
pub(super) const LONGEST_INVOCATION: TimeDelta = TimeDelta::minutes(15);
/// What an execution needs besides, between one invocation and the next.
const BETWEEN_INVOCATIONS: TimeDelta = TimeDelta::minutes(30);
/// At most this many shards are named when a day is not done.
const MAX_SHARDS_NAMED: usize = 20;

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
