//! The checks before a run or a daily execution begins. A run that does not pass them processes no row.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::run::RunScope;
use super::{BatchRequest, BatchRequestError, BatchTask, CountsOf, DayToStart, Sweep, SweepError};
use days::MAX_BEHIND_LATEST_RUN;
use store::{DueIndexPosition, Lane, RunEnd, RunRecord, RunSums, Settings};

/// The largest allowed difference between this machine's clock and the time in DynamoDB's responses.
pub const MAX_CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(2);

/// A run stores its start time only if the stored time of the latest run is at least this old, or of an earlier day.
const RUN_TIME_RESOLUTION: TimeDelta = TimeDelta::minutes(1);

impl<T: BatchTask> Sweep<T> {
    /// Checks the machine's clock, the date and the shards of `request`, and that the table, which has the `settings`, is
    /// not an unconfirmed copy. Returns the requested shards.
    pub(super) async fn check_request(
        &self,
        request: &BatchRequest,
        settings: &Settings,
    ) -> Result<Vec<u32>, SweepError> {
        self.check_clock().await?;
        self.check_latest_run(settings)?;
        let shards = self.requested_shards(request, settings.shards)?;
        if let Some(reason) = self.table.reason_to_refuse_copy(settings, self.clock.now()).await? {
            return Err(self.record_refusal(request.date, settings.shards, &shards, reason).await?);
        }
        self.record_run_time(settings).await?;
        Ok(shards)
    }

    /// Checks that the batch does not refuse the run, for example because the day's charges would exceed the merchant's
    /// limits. If the batch refuses, stores the reason in the run records.
    pub(super) async fn check_may_begin(
        &self,
        request: &BatchRequest,
        settings: &Settings,
        shards: &[u32],
    ) -> Result<(), SweepError> {
        // A daily execution has checked the day once for all its runs, and a continued run was checked when it began.
        let begins_day = request.next.is_none() && request.execution.is_none();
        let day = begins_day.then(|| DayToStart { on: request.date, today: self.today() });
        match self.task.reason_to_refuse_run(&self.table, settings, day).await? {
            Some(reason) => Err(self.record_refusal(request.date, settings.shards, shards, reason).await?),
            None => Ok(()),
        }
    }

    /// Checks that the clock of this machine agrees with the time of DynamoDB's responses. If the clock were ahead, the
    /// run would charge payments too early, which cannot be undone.
    async fn check_clock(&self) -> Result<(), SweepError> {
        if !self.clock.is_system_clock() {
            return Ok(());
        }
        let server_time = self.table.server_time().await?;
        let machine_time = self.clock.now();
        match server_time {
            Some(server_time) if (machine_time - server_time).abs() > MAX_CLOCK_DIFFERENCE => {
                Err(SweepError::Clock { machine_time, server_time })
            }
            _ => Ok(()),
        }
    }

    /// Checks that the clock of this machine is not far behind the stored time of the latest run. If the clock is far
    /// behind, this run or the latest run has a wrong clock, and an operator must find out which of them.
    fn check_latest_run(&self, settings: &Settings) -> Result<(), SweepError> {
        let now = self.clock.now();
        match settings.latest_run_at.filter(|latest| now + MAX_BEHIND_LATEST_RUN < *latest) {
            Some(latest) => Err(SweepError::ClockBehind { now, latest }),
            None => Ok(()),
        }
    }

    /// Stores the time of this run. Must not be called for a restored backup before an operator has confirmed the
    /// table: until then, the stored time must stay the time of the latest run before the backup, because the backup
    /// lacks the payments after that time.
    async fn record_run_time(&self, settings: &Settings) -> Result<(), SweepError> {
        let now = self.clock.now();
        let policy = self.table.policy();
        let is_stored =
            |latest: DateTime<Utc>| now < latest + RUN_TIME_RESOLUTION && policy.date_at(now) <= policy.date_at(latest);
        // The runs of a day begin at about the same time. It is enough that one of them stores the time.
        if !settings.latest_run_at.is_some_and(is_stored) {
            self.table.record_run_time(now).await?;
        }
        Ok(())
    }

    /// Checks the date, the shards and the position of `request`. Returns the requested shards. `count` is the number
    /// of shards of the table.
    fn requested_shards(&self, request: &BatchRequest, count: u32) -> Result<Vec<u32>, SweepError> {
        let today = self.today();
        if request.date > today {
            return Err(SweepError::Future { date: request.date, today, zone: self.table.policy().zone });
        }
        let shards = request.shards.clone().unwrap_or_else(|| (0..count).collect());
        if shards.is_empty() {
            // Without a shard, the run would report without an error that nothing is due.
            return Err(BatchRequestError::NoShards.into());
        }
        if let Some(&shard) = shards.iter().find(|&&shard| shard >= count) {
            return Err(SweepError::NoShard { shard, shards: count });
        }
        match &request.next {
            Some(next) if !shards.contains(&next.shard) || !self.task.lanes().contains(&next.lane) => {
                Err(SweepError::NextElsewhere { shard: next.shard })
            }
            _ => Ok(shards),
        }
    }

    /// Stores a run record for each of `shards`, with the reason why the run did not start. Returns the error that the
    /// run must return to its caller. `shard_count` is the number of shards of the table.
    async fn record_refusal(
        &self,
        on: NaiveDate,
        shard_count: u32,
        shards: &[u32],
        reason: String,
    ) -> Result<SweepError, SweepError> {
        let refusal = SweepError::Refused { reason };
        tracing::error!(reason = %refusal, "the run was not started");
        let scope = RunScope { on, shards: shard_count, deadline: self.clock.now() };
        for &shard in shards {
            let record = self.new_run_record(&scope, shard, None);
            let end = RunEnd {
                ended_at: record.started_at,
                counts: CountsOf::<T>::default().into(),
                sums: RunSums::default(),
                next: Some(DueIndexPosition::start_of(Lane::Due, shard)),
                stopped: Some(refusal.to_string()),
            };
            self.table.put_run_record(&RunRecord { end: Some(end), ..record }).await?;
        }
        Ok(refusal)
    }
}
