//! The sweep: one pass over everything due on or before a date, shard by shard, page by page, each row once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use futures::StreamExt as _;
use futures::stream;
use serde_json::Value;

use super::{BatchRequest, Done, Failure, Report, RequestError, Task};
use crate::billing::AccountId;
use crate::clock::Clock;
use crate::config::Config;
use crate::table::{Counts, Due, Position, Row, RunEnd, RunRecord, Table, TableError};

/// At most this many failures are named in a report; all are counted and logged.
const MAX_FAILURES_NAMED: usize = 100;

/// The time an invocation keeps back before its deadline: to close its run record and to answer.
const KEPT_BACK: TimeDelta = TimeDelta::seconds(5);

/// How a sweep goes about its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Accounts worked on at the same time.
    pub concurrency: usize,
    /// Rows read at once.
    pub page_rows: i32,
    /// The billing time zone, whose date is today.
    pub zone: Tz,
}

/// Why a sweep could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error("{date} lies in the future: today is {today} in {zone}")]
    Future { date: NaiveDate, today: NaiveDate, zone: Tz },
    #[error("there is no shard {shard}: there are {shards}, from 0")]
    NoShard { shard: u32, shards: u32 },
    #[error("next goes on in shard {shard}, which is not among the shards asked for")]
    NextElsewhere { shard: u32 },
    #[error("the day is not begun: {reason}")]
    Refused { reason: String },
    #[error("the run stopped: {reason}")]
    Stopped { reason: String },
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("the table has no settings yet")]
    NoSettings,
    #[error(transparent)]
    Table(#[from] TableError),
}

/// A batch: a sweep and what it does with each row, set up once.
#[derive(Debug)]
pub struct Sweep<T> {
    table: Table,
    task: T,
    limits: Limits,
    clock: Arc<dyn Clock>,
}

/// One shard's walk, as it goes.
struct Walk {
    counts: Counts,
    failures: Vec<Failure>,
    /// The position after which nothing has been begun.
    reached: Option<Position>,
    is_complete: bool,
    stopped: Option<String>,
    held_back: Option<String>,
}

impl<T: Task> Sweep<T> {
    /// The batch that does `task` with what is due in `table`. Makes the settings if the table is new.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn new(table: Table, task: T, config: &Config, clock: Arc<dyn Clock>) -> Result<Self, TableError> {
        table.init_settings(&config.initial_settings(clock.as_ref())).await?;
        Ok(Self { table, task, limits: config.limits(), clock })
    }

    /// Carries out `event` until shortly before `deadline`: one invocation.
    ///
    /// # Errors
    /// [`SweepError`]: an event that is not understood changes nothing.
    pub async fn handle(&self, event: Value, deadline: DateTime<Utc>) -> Result<Report, SweepError> {
        let request = BatchRequest::from_event(event, self.limits.zone)?;
        let report = self.run(&request, deadline - KEPT_BACK).await?;
        match &report.stopped {
            // Nobody reads a schedule's answer: a run that stopped must fail, to be seen and tried again.
            Some(reason) if request == BatchRequest::on(request.date) => {
                Err(SweepError::Stopped { reason: reason.clone() })
            }
            _ => Ok(report),
        }
    }

    /// Walks what `request` asks for until the end of the index or shortly before `deadline`.
    ///
    /// # Errors
    /// [`SweepError`]: a date in the future, a shard that is not there, or a table that does not answer.
    pub async fn run(&self, request: &BatchRequest, deadline: DateTime<Utc>) -> Result<Report, SweepError> {
        let today = self.clock.now().with_timezone(&self.limits.zone).date_naive();
        if request.date > today {
            return Err(SweepError::Future { date: request.date, today, zone: self.limits.zone });
        }
        let count = self.table.get_settings().await?.ok_or(SweepError::NoSettings)?.shards;
        let shards = request.shards.clone().unwrap_or_else(|| (0..count).collect());
        if let Some(&shard) = shards.iter().find(|&&shard| shard >= count) {
            return Err(SweepError::NoShard { shard, shards: count });
        }
        let mut report = Report {
            batch: T::BATCH,
            date: request.date,
            shards: shards.clone(),
            counts: none_yet::<T>(),
            failures: Vec::new(),
            next: None,
            complete: true,
            stopped: None,
        };
        if let Some(next) = request.next.as_ref().filter(|next| !shards.contains(&next.shard)) {
            return Err(SweepError::NextElsewhere { shard: next.shard });
        }
        self.task.begin();
        if request.next.is_none()
            && let Some(reason) = self.task.refuses(&self.table, count, request.date).await?
        {
            let refused = SweepError::Refused { reason };
            tracing::error!(reason = %refused, "nothing is done");
            self.record_refusal(request.date, &shards, &refused.to_string()).await?;
            return Err(refused);
        }
        let first =
            request.next.as_ref().and_then(|next| shards.iter().position(|&shard| shard == next.shard)).unwrap_or(0);
        for (index, &shard) in shards.iter().enumerate().skip(first) {
            let from = request.next.clone().filter(|next| index == first && next.shard == shard);
            let walk = self.walk(request.date, shard, from, deadline).await?;
            for (name, count) in walk.counts {
                *report.counts.entry(name).or_default() += count;
            }
            report.failures.extend(walk.failures);
            report.failures.truncate(MAX_FAILURES_NAMED);
            report.stopped = report.stopped.or(walk.stopped).or(walk.held_back);
            if !walk.is_complete {
                report.next = Some(walk.reached.unwrap_or_else(|| Position::start_of(shard)));
                report.complete = false;
                break;
            }
        }
        Ok(report)
    }

    /// Records of each of `shards` that it was not walked, and why.
    async fn record_refusal(&self, on: NaiveDate, shards: &[u32], reason: &str) -> Result<(), TableError> {
        for &shard in shards {
            let begun = self.new_run(on, shard, None);
            let end = RunEnd {
                ended_at: begun.started_at,
                counts: none_yet::<T>(),
                next: Some(Position::start_of(shard)),
                stopped: Some(reason.to_owned()),
            };
            self.table.put_run(&RunRecord { end: Some(end), ..begun }).await?;
        }
        Ok(())
    }

    fn new_run(&self, on: NaiveDate, shard: u32, from: Option<Position>) -> RunRecord {
        let (id, started_at) = (self.clock.ulid(), self.clock.now());
        RunRecord { batch: T::BATCH, on, shard, id, started_at, from, end: None }
    }

    async fn walk(
        &self,
        on: NaiveDate,
        shard: u32,
        from: Option<Position>,
        deadline: DateTime<Utc>,
    ) -> Result<Walk, SweepError> {
        let from = from.filter(|position| !position.is_start());
        let run = self.new_run(on, shard, from.clone());
        self.table.put_run(&run).await?;
        let mut walk = Walk {
            counts: none_yet::<T>(),
            failures: Vec::new(),
            reached: from,
            is_complete: false,
            stopped: None,
            held_back: None,
        };
        let walked = self.pages(on, shard, deadline, &mut walk).await;
        if let Err(error) = walked {
            tracing::error!(%error, shard, "a walk was cut short");
            walk.stopped = Some(error.to_string());
        }
        let end = RunEnd {
            ended_at: self.clock.now(),
            counts: walk.counts.clone(),
            next: (!walk.is_complete).then(|| walk.reached.clone().unwrap_or_else(|| Position::start_of(shard))),
            stopped: walk.stopped.clone().or_else(|| walk.held_back.clone()),
        };
        if let Err(error) = self.table.close_run(&run, end).await {
            tracing::error!(%error, shard, "a run record is left open");
        }
        Ok(walk)
    }

    async fn pages(
        &self,
        on: NaiveDate,
        shard: u32,
        deadline: DateTime<Utc>,
        walk: &mut Walk,
    ) -> Result<(), TableError> {
        loop {
            if self.clock.now() >= deadline {
                return Ok(());
            }
            let page = self.task.page(&self.table, shard, on, walk.reached.as_ref(), self.limits.page_rows).await?;
            let positions: Vec<Position> = page.rows.iter().map(|row| row.position.clone()).collect();
            // Counted from the index, before anything is done: a row whose outcome got lost would show.
            walk.add("due", positions.len());
            let done = self.page(page.rows, on, deadline).await;
            let mut out_of_time = None;
            for (index, key, done) in done {
                if done.is_unbegun() {
                    walk.take_back("due");
                    out_of_time = Some(out_of_time.map_or(index, |first: usize| first.min(index)));
                }
                walk.count(key, done);
            }
            match out_of_time {
                // What was begun after the first row that was not will be looked at twice, and be found done.
                Some(first) => {
                    walk.reached = first.checked_sub(1).map(|last| positions[last].clone()).or(walk.reached.take());
                    return Ok(());
                }
                None => walk.reached = positions.last().cloned().or(walk.reached.take()),
            }
            if walk.stopped.is_some() {
                return Ok(());
            }
            if page.is_last {
                walk.is_complete = true;
                return Ok(());
            }
        }
    }

    /// Works on one page: several accounts at a time, the rows of one account one after the other.
    async fn page(&self, rows: Vec<Row>, on: NaiveDate, deadline: DateTime<Utc>) -> Vec<(usize, String, Done)> {
        let mut done = Vec::with_capacity(rows.len());
        let mut order: Vec<AccountId> = Vec::new();
        let mut by_account: HashMap<AccountId, Vec<(usize, Due)>> = HashMap::new();
        for (index, row) in rows.into_iter().enumerate() {
            match row.due {
                Ok(due) => {
                    let account = due.of.account.clone();
                    let of_account = by_account.entry(account.clone()).or_insert_with(|| {
                        order.push(account);
                        Vec::new()
                    });
                    of_account.push((index, due));
                }
                Err(error) => {
                    let key = format!("{} {}", row.position.pk, row.position.sk);
                    done.push((index, key, Done::Failed { reason: error.to_string() }));
                }
            }
        }
        let is_stopped = AtomicBool::new(false);
        let chains = order.into_iter().filter_map(|account| by_account.remove(&account));
        let worked = stream::iter(chains)
            .map(|chain| async {
                let mut done = Vec::with_capacity(chain.len());
                for (index, due) in chain {
                    let is_late = is_stopped.load(Ordering::Relaxed) || self.clock.now() >= deadline;
                    let outcome = if is_late { Done::OutOfTime } else { self.task.work(&due, on, deadline).await };
                    if matches!(outcome, Done::Stop { .. }) {
                        is_stopped.store(true, Ordering::Relaxed);
                    }
                    done.push((index, due.of.key().to_string(), outcome));
                }
                done
            })
            .buffer_unordered(self.limits.concurrency.max(1))
            .collect::<Vec<_>>()
            .await;
        done.extend(worked.into_iter().flatten());
        done
    }
}

impl Walk {
    fn count(&mut self, key: String, done: Done) {
        let name = match done {
            Done::As(name) => name,
            Done::Held { counted, reason } => {
                if self.held_back.is_none() {
                    tracing::warn!(%reason, "the run holds back");
                    self.held_back = Some(reason);
                }
                counted
            }
            Done::Stop { counted, reason } => {
                tracing::error!(%key, %reason, "the run stops");
                self.stopped = Some(reason);
                match counted {
                    Some(name) => name,
                    None => return,
                }
            }
            Done::Failed { reason } => {
                tracing::error!(%key, %reason, "a row failed");
                if self.failures.len() < MAX_FAILURES_NAMED {
                    self.failures.push(Failure { key, reason });
                }
                "failed"
            }
            Done::OutOfTime => return,
        };
        self.add(name, 1);
    }

    fn add(&mut self, name: &str, rows: usize) {
        *self.counts.entry(name.to_owned()).or_default() += u64::try_from(rows).unwrap_or(u64::MAX);
    }

    fn take_back(&mut self, name: &str) {
        *self.counts.entry(name.to_owned()).or_default() -= 1;
    }
}

fn none_yet<T: Task>() -> Counts {
    T::OUTCOMES.iter().chain(&["due", "failed"]).map(|name| ((*name).to_owned(), 0)).collect()
}

/// The time left until `deadline`.
pub(crate) fn time_left(clock: &dyn Clock, deadline: DateTime<Utc>) -> TimeDelta {
    deadline.signed_duration_since(clock.now())
}
