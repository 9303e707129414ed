//! A run: one invocation of a batch, over the shards it is asked for.

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Serialize;
use serde_json::Value;

use super::execution_messages::{Asked, Begun, ExecutionError, Finished};
use super::{BatchRequest, CountsOf, Limits, Outcome as _, Report, RequestError, Task};
use clock::Clock;
use store::{Batch, Counts, Lane, Position, RunEnd, RunRecord, RunSums, Settings, Table, TableConfig, TableError};

/// At most this many failures are named in a report; all are counted and logged.
pub(super) const MAX_FAILURES_NAMED: usize = 100;

/// The time an invocation keeps back before its deadline: to close its run record and to answer.
const KEPT_BACK: TimeDelta = TimeDelta::seconds(5);

/// The machine's clock and the table's may differ by this much.
pub const MAX_CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(2);

/// A run whose clock is further behind the latest run than this does not begin.
const MAX_BEHIND_LATEST_RUN: TimeDelta = TimeDelta::hours(1);

/// The time of a run is recorded again after so long.
const TIME_BETWEEN_RUNS: TimeDelta = TimeDelta::minutes(1);

/// The rows and the deadline of all walks of one invocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    /// The date whose rows are due.
    pub on: NaiveDate,
    /// The number of shards of the table, or of the execution.
    pub shards: u32,
    pub deadline: DateTime<Utc>,
}

/// Why a sweep could not be carried out.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
pub enum SweepError {
    #[error("{date} lies in the future: today is {today} in {zone}")]
    Future { date: NaiveDate, today: NaiveDate, zone: Tz },
    #[error("this machine's clock says {ours}, and the table's answers {theirs}: nothing is begun until it is right")]
    Clock { ours: DateTime<Utc>, theirs: DateTime<Utc> },
    #[error(
        "this machine's clock says {ours}, and a run was recorded at {latest}: nothing is begun until an operator confirms \
         the clock (dueday confirm-clock)"
    )]
    ClockBehind { ours: DateTime<Utc>, latest: DateTime<Utc> },
    #[error("there is no shard {shard}: there are {shards}, from 0")]
    NoShard { shard: u32, shards: u32 },
    #[error("next goes on in shard {shard}, which is not among the shards asked for")]
    NextElsewhere { shard: u32 },
    #[error("the day is not begun: {reason}")]
    Refused { reason: String },
    #[error(transparent)]
    Execution(ExecutionError),
    #[error("the day is not done: {report}")]
    NotDone { report: String },
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("the table has no settings yet")]
    NoSettings,
    #[error(transparent)]
    Table(#[from] TableError),
}

impl SweepError {
    /// Its name, by which a state machine tells errors apart, such as `NotDone`.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}

/// What an invocation answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer<C> {
    Walked(Report<C>),
    Begun(Begun),
    Finished(Finished),
}

impl<C> Answer<C> {
    /// What a walk answers; `None` if it was none.
    pub fn report(self) -> Option<Report<C>> {
        match self {
            Answer::Walked(report) => Some(report),
            Answer::Begun(_) | Answer::Finished(_) => None,
        }
    }
}

/// A batch: a sweep and what it does with each row, set up once.
#[derive(Debug)]
pub struct Sweep<T> {
    pub(super) table: Table,
    pub(super) task: T,
    pub(super) limits: Limits,
    pub(super) clock: Arc<dyn Clock>,
}

impl<T: Task> Sweep<T> {
    pub(super) const BATCH: Batch = <CountsOf<T> as Counts>::BATCH;

    /// The batch that does `task` with what is due in `table`. Makes the settings if the table is new.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn new(
        table: Table,
        task: T,
        (config, limits): (&TableConfig, Limits),
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TableError> {
        table.init_settings(&config.initial_settings(clock.as_ref())).await?;
        Ok(Self { table, task, limits, clock })
    }

    /// Carries out `event` until shortly before `deadline`: one invocation.
    ///
    /// # Errors
    /// [`SweepError`]: an event that is not understood changes nothing.
    pub async fn handle(&self, event: Value, deadline: DateTime<Utc>) -> Result<Answer<CountsOf<T>>, SweepError> {
        let request = match Asked::read(event, self.limits.zone)? {
            Asked::Begin(begin) => return self.begin(&begin).await.map(Answer::Begun),
            Asked::Finish(finish) => return self.finish(&finish).await.map(Answer::Finished),
            Asked::Walk(request) => request,
        };
        let report = self.run(&request, deadline - KEPT_BACK).await?;
        // Nobody reads a schedule's answer: a run that has not done its day must fail, to be seen and tried again.
        if request == BatchRequest::on(request.date) && !report.is_done() {
            let report = serde_json::to_string(&report).unwrap_or_else(|error| error.to_string());
            return Err(SweepError::NotDone { report });
        }
        if request == BatchRequest::on(request.date)
            && let Some(report) = self.task.unresolved(&self.table).await?
        {
            return Err(SweepError::NotDone { report });
        }
        Ok(Answer::Walked(report))
    }

    /// Walks what `request` asks for until the end of the index or shortly before `deadline`.
    ///
    /// # Errors
    /// [`SweepError`]: a date in the future, a shard that is not there, or a table that does not answer.
    pub async fn run(
        &self,
        request: &BatchRequest,
        deadline: DateTime<Utc>,
    ) -> Result<Report<CountsOf<T>>, SweepError> {
        let (mut all, shards) = self.check(request).await?;
        if let Some(execution) = &request.execution {
            // A shard that was added since the execution began is no part of its day.
            all = self.hold(execution, None).await?.unwrap_or(all);
        }
        let run = self.task.begin(request.runs_at_once());
        self.may_begin(request, all, &shards).await?;
        let scope = Scope { on: request.date, shards: all, deadline };
        let mut report = Report {
            batch: Self::BATCH,
            date: request.date,
            shards: shards.clone(),
            counts: CountsOf::<T>::default(),
            sums: RunSums::default(),
            unreminded: 0,
            failures: Vec::new(),
            next: None,
            complete: true,
            stopped: None,
        };
        for from in self.lanes_of(&shards, request.next.as_ref()) {
            let after = self.task.lanes().iter().find(|lane| **lane > from.lane);
            let after = after.map(|lane| Position::start_of(*lane, from.shard));
            let walk = self.walk(&scope, &run, from, after).await?;
            report.counts += walk.counts;
            report.sums.add(&walk.totals.sums);
            report.unreminded += walk.totals.unreminded;
            report.failures.extend(walk.failures);
            report.failures.truncate(MAX_FAILURES_NAMED);
            report.stopped = report.stopped.or(walk.stopped).or(walk.held_back);
            if !walk.is_complete {
                report.next = Some(walk.reached);
                report.complete = false;
                break;
            }
        }
        T::Outcome::log(&report);
        Ok(report)
    }

    /// How many shards there are, and those that `request` asks for, if it can be carried out now.
    pub(super) async fn check(&self, request: &BatchRequest) -> Result<(u32, Vec<u32>), SweepError> {
        self.check_clock().await?;
        let settings = self.settings().await?;
        self.check_latest_run(&settings).await?;
        self.shards(request, settings.shards)
    }

    /// That nothing forbids the table, or the day if this is its beginning. If something does, it is on record.
    pub(super) async fn may_begin(&self, request: &BatchRequest, all: u32, shards: &[u32]) -> Result<(), SweepError> {
        let mut refused = self.task.refuses_table(&self.table).await?;
        // An execution has asked for the day, once for all of its invocations.
        if refused.is_none() && request.next.is_none() && request.execution.is_none() {
            refused = self.task.refuses(&self.table, all, request.date, self.today()).await?;
        }
        match refused {
            Some(reason) => Err(self.refused(request.date, (all, shards), reason).await?),
            None => Ok(()),
        }
    }

    pub(super) async fn settings(&self) -> Result<Settings, SweepError> {
        self.table.get_settings().await?.ok_or(SweepError::NoSettings)
    }

    /// That the machine's own clock is right: under one that is ahead, dates would be moved that nobody moves back.
    async fn check_clock(&self) -> Result<(), SweepError> {
        if !self.clock.is_machines_own() {
            return Ok(());
        }
        let theirs = self.table.time().await?;
        let ours = self.clock.now();
        match theirs {
            Some(theirs) if (ours - theirs).abs() > MAX_CLOCK_DIFFERENCE => Err(SweepError::Clock { ours, theirs }),
            _ => Ok(()),
        }
    }

    /// That the clock is not far behind the latest run, whose clock or ours is wrong then: a person must say which. Records
    /// the time of this run.
    async fn check_latest_run(&self, settings: &Settings) -> Result<(), SweepError> {
        let ours = self.clock.now();
        let latest = settings.latest_run_at;
        if let Some(latest) = latest.filter(|latest| ours + MAX_BEHIND_LATEST_RUN < *latest) {
            return Err(SweepError::ClockBehind { ours, latest });
        }
        // The invocations of a day begin together: one of them is enough.
        if latest.is_none_or(|latest| latest + TIME_BETWEEN_RUNS <= ours) {
            self.table.record_run_time(ours).await?;
        }
        Ok(())
    }

    /// Where each lane of each of `shards` begins: all of the first lane before any of the second. The first of them is
    /// `next`, if that is where to go on.
    fn lanes_of(&self, shards: &[u32], next: Option<&Position>) -> Vec<Position> {
        let lanes = self.task.lanes().iter();
        let starts = lanes.flat_map(|lane| shards.iter().map(|shard| Position::start_of(*lane, *shard)));
        let Some(next) = next else { return starts.collect() };
        let ahead = starts.skip_while(|start| (start.lane, start.shard) != (next.lane, next.shard)).skip(1);
        [next.clone()].into_iter().chain(ahead).collect()
    }

    fn shards(&self, request: &BatchRequest, count: u32) -> Result<(u32, Vec<u32>), SweepError> {
        let today = self.today();
        if request.date > today {
            return Err(SweepError::Future { date: request.date, today, zone: self.limits.zone });
        }
        let shards = request.shards.clone().unwrap_or_else(|| (0..count).collect());
        if shards.is_empty() {
            // To have walked nothing would look like a quiet day.
            return Err(RequestError::NoShards.into());
        }
        if let Some(&shard) = shards.iter().find(|&&shard| shard >= count) {
            return Err(SweepError::NoShard { shard, shards: count });
        }
        match &request.next {
            Some(next) if !shards.contains(&next.shard) || !self.task.lanes().contains(&next.lane) => {
                Err(SweepError::NextElsewhere { shard: next.shard })
            }
            _ => Ok((count, shards)),
        }
    }

    /// Records of each of `shards` that it was not walked, and why.
    async fn refused(
        &self,
        on: NaiveDate,
        (all, shards): (u32, &[u32]),
        reason: String,
    ) -> Result<SweepError, SweepError> {
        let refused = SweepError::Refused { reason };
        tracing::error!(reason = %refused, "nothing is done");
        let scope = Scope { on, shards: all, deadline: self.clock.now() };
        for &shard in shards {
            let begun = self.record(&scope, shard, None);
            let end = RunEnd {
                ended_at: begun.started_at,
                counts: CountsOf::<T>::default().into(),
                sums: RunSums::default(),
                next: Some(Position::start_of(Lane::Due, shard)),
                stopped: Some(refused.to_string()),
            };
            self.table.put_run(&RunRecord { end: Some(end), ..begun }).await?;
        }
        Ok(refused)
    }

    /// The present day. The date of a run only says which rows are due; what is done counts from this one, so that late
    /// or repeated dates cannot burn a retry schedule.
    pub(super) fn today(&self) -> NaiveDate {
        self.clock.now().with_timezone(&self.limits.zone).date_naive()
    }

    /// The record of a walk of `shard` that begins.
    pub(super) fn record(&self, scope: &Scope, shard: u32, from: Option<Position>) -> RunRecord {
        let (id, started_at) = (self.clock.ulid(), self.clock.now());
        let (deadline, shards) = (Some(scope.deadline), Some(scope.shards));
        RunRecord { batch: Self::BATCH, on: scope.on, shard, id, started_at, deadline, shards, from, end: None }
    }
}

/// The time left until `deadline`.
pub fn time_left(clock: &dyn Clock, deadline: DateTime<Utc>) -> TimeDelta {
    deadline.signed_duration_since(clock.now())
}
