//! A run: one pass of a batch over the due rows of the requested shards.

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Serialize;
use serde_json::Value;

use super::execution_messages::{DailyExecutionError, ExecutionResult, ExecutionStart, FunctionRequest};
use super::report::MAX_LISTED_FAILURES;
use super::{BatchRequest, BatchRequestError, BatchTask, CountsOf, Outcome, RunLimits, RunMonitor, RunReport};
use billing::Policy;
use clock::Clock;
use store::{Batch, DueIndexPosition, OutcomeCounts, RunRecord, Settings, Table, TableConfig, TableError};

/// The time that a run reserves before the deadline of its invocation, to close its run record and to return its
/// response.
const RESERVED_TIME: TimeDelta = TimeDelta::seconds(5);

/// The date, the number of shards and the deadline of one run. All its walks (one for each shard and lane) share them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunScope {
    /// The date of the run: it processes the rows that are due on or before this date.
    pub on: NaiveDate,
    /// The number of shards of the table. For a run of a daily execution: the number of shards when the execution
    /// began.
    pub shards: u32,
    /// The time at which the walks must end.
    pub deadline: DateTime<Utc>,
}

/// The reason why a run or a daily execution did not start, or did not complete its day.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
pub enum SweepError {
    #[error("{date} lies in the future: today is {today} in {zone}")]
    Future { date: NaiveDate, today: NaiveDate, zone: Tz },
    #[error(
        "this machine's clock says {machine_time}, and DynamoDB's responses say {server_time}: no run starts until the \
         clock is right"
    )]
    Clock { machine_time: DateTime<Utc>, server_time: DateTime<Utc> },
    #[error(
        "this machine's clock says {now}, and a run was recorded at {latest}: no run starts until an operator confirms \
         the clock (dueday confirm-clock)"
    )]
    ClockBehind { now: DateTime<Utc>, latest: DateTime<Utc> },
    #[error("there is no shard {shard}: the table has {shards} shards, numbered from 0")]
    NoShard { shard: u32, shards: u32 },
    #[error("the position `next` of the request (shard {shard}) is in a lane or shard that was not requested")]
    NextElsewhere { shard: u32 },
    #[error("the run was not started: {reason}")]
    Refused { reason: String },
    #[error(transparent)]
    Execution(DailyExecutionError),
    #[error("the day is not done: {report}")]
    NotDone { report: String },
    #[error(transparent)]
    Request(#[from] BatchRequestError),
    #[error("the table has no settings yet")]
    NoSettings,
    #[error(transparent)]
    Table(#[from] TableError),
}

impl SweepError {
    /// Returns the name of the error, such as `NotDone`. The state machine distinguishes errors by this name.
    pub fn error_type(&self) -> &'static str {
        self.into()
    }
}

/// The response to an invocation of the batch function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged, bound = "RunReport<O>: Serialize")]
pub enum BatchResponse<O: Outcome> {
    Report(RunReport<O>),
    ExecutionStart(ExecutionStart),
    ExecutionResult(ExecutionResult),
}

impl<O: Outcome> BatchResponse<O> {
    /// Returns the report of a run; `None` if the invocation began or finished a daily execution.
    pub fn report(self) -> Option<RunReport<O>> {
        match self {
            BatchResponse::Report(report) => Some(report),
            BatchResponse::ExecutionStart(_) | BatchResponse::ExecutionResult(_) => None,
        }
    }
}

/// The payment batch or the reminder batch of one table. It reads the due rows of `table`, and processes each row with
/// `task`.
#[derive(Debug)]
pub struct Sweep<T> {
    pub(super) table: Table,
    pub(super) task: T,
    pub(super) limits: RunLimits,
    pub(super) clock: Arc<dyn Clock>,
    /// Shows the progress of each run to the code that has started the run.
    pub(super) monitor: Arc<RunMonitor>,
}

impl<T: BatchTask> Sweep<T> {
    /// Which batch this sweep runs: the payment batch or the reminder batch.
    pub(super) const BATCH: Batch = <CountsOf<T> as OutcomeCounts>::BATCH;

    /// Creates the batch that processes the due rows of `table` with `task`. Stores the initial settings if the table
    /// is new.
    pub async fn new(
        table: Table,
        task: T,
        config: &TableConfig,
        limits: RunLimits,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TableError> {
        table.init_settings(&config.initial_settings(clock.as_ref())).await?;
        Ok(Self { table, task, limits, clock, monitor: Arc::new(RunMonitor::new(Self::BATCH)) })
    }

    /// Returns the policy of the latest run, or before the first run the policy that was stored when the batch was
    /// created.
    pub fn policy(&self) -> Arc<Policy> {
        self.table.policy()
    }

    /// Returns the monitor of this batch's runs, which shows their progress.
    pub fn monitor(&self) -> Arc<RunMonitor> {
        self.monitor.clone()
    }

    /// Handles one invocation of the batch function: carries out the request in `event` until shortly before
    /// `deadline`.
    ///
    /// # Errors
    /// [`SweepError`] in these cases:
    /// - The event is not valid. Then nothing was changed.
    /// - A check or a request to the table fails.
    /// - A scheduled run has not completed its day.
    pub async fn handle_invocation(
        &self,
        event: Value,
        deadline: DateTime<Utc>,
    ) -> Result<BatchResponse<T::Outcome>, SweepError> {
        let settings = self.read_settings().await?;
        let request = match FunctionRequest::read(event, self.table.policy().zone)? {
            FunctionRequest::Begin(begin) => {
                return self.begin_execution(&begin, settings).await.map(BatchResponse::ExecutionStart);
            }
            FunctionRequest::Finish(finish) => {
                return self.finish_execution(&finish, &settings).await.map(BatchResponse::ExecutionResult);
            }
            FunctionRequest::Walk(request) => request,
        };
        let report = self.run_with_settings(settings, &request, deadline - RESERVED_TIME).await?;
        // No program reads the response to a scheduled event. So a scheduled run that has not completed its day must
        // fail, to raise an alarm and to be retried.
        if request == BatchRequest::for_date(request.date) && !report.is_done() {
            let report = serde_json::to_string(&report).unwrap_or_else(|error| error.to_string());
            return Err(SweepError::NotDone { report });
        }
        if request == BatchRequest::for_date(request.date)
            && let Some(report) = self.task.unresolved_problem(&self.table).await?
        {
            return Err(SweepError::NotDone { report });
        }
        Ok(BatchResponse::Report(report))
    }

    /// Carries out `request` until the end of the index or until shortly before `deadline`.
    ///
    /// # Errors
    /// [`SweepError`] if the date is in the future, a shard does not exist, the clock is wrong, the batch refuses to
    /// start, or a request to the table fails.
    pub async fn run(
        &self,
        request: &BatchRequest,
        deadline: DateTime<Utc>,
    ) -> Result<RunReport<T::Outcome>, SweepError> {
        let settings = self.read_settings().await?;
        self.run_with_settings(settings, request, deadline).await
    }

    /// Carries out `request`, like [`Sweep::run`], for the table that has the `settings`, with the policy that was read
    /// before.
    pub(super) async fn run_with_settings(
        &self,
        mut settings: Settings,
        request: &BatchRequest,
        deadline: DateTime<Utc>,
    ) -> Result<RunReport<T::Outcome>, SweepError> {
        let shards = self.check_request(request, &settings).await?;
        if let Some(execution) = &request.execution {
            // Use the number of shards at the beginning of the daily execution: the execution does not process shards
            // that were added to the table later.
            settings.shards = self.acquire_lease(execution, None).await?.unwrap_or(settings.shards);
        }
        let run = self.task.start_run(request.concurrent_runs());
        self.check_may_begin(request, &settings, &shards).await?;
        let scope = RunScope { on: request.date, shards: settings.shards, deadline };
        let mut report = RunReport::new(Self::BATCH, request.date, shards, CountsOf::<T>::default());
        let walked = self.walk_shards(&scope, &run, request.next.as_ref(), &mut report).await;
        // Also after a failed walk: a write that failed before is tried again.
        let (totals, written) = self.task.after_page(&run, None, self.today()).await;
        walked?;
        written?;
        report.totals += totals;
        T::log_report(&report, self.clock.now());
        Ok(report)
    }

    /// Walks the shards of `report`, one after the other, from the position `next` or from their start. Adds the results
    /// to `report`. `run` must have no other walks, because each walk takes the totals of `run`.
    async fn walk_shards(
        &self,
        scope: &RunScope,
        run: &T::Run,
        next: Option<&DueIndexPosition>,
        report: &mut RunReport<T::Outcome>,
    ) -> Result<(), SweepError> {
        for from in self.positions_to_start_from(&report.shards, next) {
            let next_lane = self.task.lanes().iter().find(|lane| **lane > from.lane);
            let next_lane_start = next_lane.map(|lane| DueIndexPosition::start_of(*lane, from.shard));
            let walk = self.walk_lane(scope, run, from, next_lane_start).await?;
            report.counts += walk.counts;
            report.totals += walk.totals;
            walk.oldest_due.into_iter().for_each(|due| report.add_due_date(due, self.today()));
            report.failures.extend(walk.failures);
            report.failures.truncate(MAX_LISTED_FAILURES);
            report.stopped = report.stopped.take().or(walk.stopped).or(walk.deferred);
            if !walk.is_complete {
                report.next = Some(walk.reached);
                report.complete = false;
                break;
            }
        }
        Ok(())
    }

    /// Returns the settings of the table. The invocation or the run that begins with this read uses their policy to its
    /// end.
    async fn read_settings(&self) -> Result<Settings, SweepError> {
        let settings = self.table.get_settings().await?.ok_or(SweepError::NoSettings)?;
        self.table.use_policy(&settings, None)?;
        Ok(settings)
    }

    /// Returns the start positions of a run's walks (one walk for each shard and lane): the first lane of all `shards`,
    /// then the second lane of all `shards`, and so on. With `next`, leaves out the walks before this position, and the
    /// first walk starts at `next`.
    fn positions_to_start_from(&self, shards: &[u32], next: Option<&DueIndexPosition>) -> Vec<DueIndexPosition> {
        let lanes = self.task.lanes().iter();
        let starts = lanes.flat_map(|lane| shards.iter().map(|shard| DueIndexPosition::start_of(*lane, *shard)));
        let Some(next) = next else { return starts.collect() };
        let later_starts = starts.skip_while(|start| (start.lane, start.shard) != (next.lane, next.shard)).skip(1);
        [next.clone()].into_iter().chain(later_starts).collect()
    }

    /// Returns the current date in the billing time zone. The date of a run only selects the due rows. All other
    /// decisions use the current date, so that a late or repeated run of an earlier date does not use up the tries of
    /// the retry schedule.
    pub(super) fn today(&self) -> NaiveDate {
        self.table.policy().date_at(self.clock.now())
    }

    /// Creates the open run record of a walk over `shard` that begins now. `from` is the position from which the walk
    /// continues; `None` if the walk begins at the start of the shard.
    pub(super) fn new_run_record(&self, scope: &RunScope, shard: u32, from: Option<DueIndexPosition>) -> RunRecord {
        let (id, started_at) = (self.clock.ulid(), self.clock.now());
        let (deadline, shards) = (Some(scope.deadline), Some(scope.shards));
        RunRecord { batch: Self::BATCH, on: scope.on, shard, id, started_at, deadline, shards, from, end: None }
    }
}

/// Returns the time that is left until `deadline`.
pub fn time_left(clock: &dyn Clock, deadline: DateTime<Utc>) -> TimeDelta {
    deadline.signed_duration_since(clock.now())
}
