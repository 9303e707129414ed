//! A walk: one shard of the index, from page to page, each row once. Pages are read while the rows of earlier ones are
//! worked on, so that no row waits for another but those of its account.

use std::pin::pin;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use futures::future::{Fuse, FusedFuture as _, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};

use super::queue::{Queue, Waiting};
use super::run::{MAX_FAILURES_NAMED, Scope};
use super::{Done, DoneBy, Failure, Outcome, Sweep, SweepError, Task, Totals};
use store::{Counts as _, DuePage, Lane, Position, RunEnd, TableError};

/// One shard's walk, as it goes.
pub(super) struct Walk<O: Outcome> {
    pub counts: O::Counts,
    pub totals: Totals,
    pub failures: Vec<Failure>,
    /// The position after which nothing has been begun, once the walk has ended.
    pub reached: Position,
    pub is_complete: bool,
    pub stopped: Option<String>,
    pub held_back: Option<String>,
    /// Rows that were read.
    read: u64,
    /// The first row that was read and not begun.
    unbegun: Option<(u64, Arc<Position>)>,
}

impl<T: Task> Sweep<T> {
    /// Walks a lane of a shard on from `from` as a part of `run`, and writes its run record. After the lane, the shard goes on
    /// at `after`.
    pub(super) async fn walk(
        &self,
        scope: &Scope,
        run: &T::Run,
        from: Position,
        after: Option<Position>,
    ) -> Result<Walk<T::Outcome>, SweepError> {
        let Position { lane, shard, .. } = from;
        let record = self.record(scope, shard, Some(from.clone()).filter(|from| !from.is_start()));
        self.table.put_run(&record).await?;
        let mut walk = Walk::new(from);
        if let Err(error) = self.pages(scope, run, &mut walk).await {
            tracing::error!(%error, shard, ?lane, "a walk was cut short");
            walk.stopped = Some(error.to_string());
        }
        walk.totals = self.task.take_totals(run);
        let end = RunEnd {
            ended_at: self.clock.now(),
            counts: walk.counts.into(),
            sums: walk.totals.sums.clone(),
            next: if walk.is_complete { after } else { Some(walk.reached.clone()) },
            stopped: walk.stopped.clone().or_else(|| walk.held_back.clone()),
        };
        if let Err(error) = self.table.close_run(&record, end).await {
            tracing::error!(%error, shard, "a run record is left open");
        }
        Ok(walk)
    }

    /// Works on everything from where `walk` stands to the end of the lane, or until it must end. What was begun is always
    /// awaited.
    async fn pages(&self, scope: &Scope, run: &T::Run, walk: &mut Walk<T::Outcome>) -> Result<(), TableError> {
        let Position { lane, shard, .. } = walk.reached;
        let read_ahead = usize::try_from(self.limits.page_rows).unwrap_or(1);
        let mut queue = Queue::default();
        let mut working = FuturesUnordered::new();
        let mut reading = pin!(Fuse::terminated());
        let (mut is_read, mut failed) = (false, None);
        loop {
            let goes_on = walk.goes_on() && self.clock.now() < scope.deadline;
            while goes_on && working.len() < self.limits.concurrency.max(1) {
                let Some(row) = queue.take() else { break };
                working.push(self.work_on(run, lane, row, scope.deadline));
            }
            if goes_on && !is_read && failed.is_none() && reading.is_terminated() && queue.len() < read_ahead {
                reading.set(self.next_page(run, scope.on, walk.reached.clone()).fuse());
            }
            tokio::select! {
                // In this order, so that equal answers in equal order lead to equal walks.
                biased;
                Some((row, done)) = working.next() => {
                    queue.free(&row.due.key.account);
                    walk.count(row, done);
                }
                page = &mut reading, if !reading.is_terminated() => match page {
                    Ok(page) => is_read = walk.take_in(page, lane, &mut queue),
                    Err(error) => failed = Some(error),
                },
                else => break,
            }
        }
        drop(working);
        let is_begun = walk.end(queue);
        walk.is_complete = is_read && is_begun;
        let counted = self.task.page_done(shard, self.today()).await;
        failed.map_or(counted, Err)
    }

    /// Reads the page after `after`. Meanwhile what the last page came to is saved.
    async fn next_page(&self, run: &T::Run, on: NaiveDate, after: Position) -> Result<DuePage, TableError> {
        let shard = after.shard;
        let after = Some(&after).filter(|position| !position.is_start_of_lane());
        let page = self.task.page(run, &self.table, shard, on, after, self.limits.page_rows);
        let (counted, page) = futures::join!(self.task.page_done(shard, self.today()), page);
        counted.and(page)
    }

    async fn work_on(&self, run: &T::Run, lane: Lane, row: Waiting, deadline: DateTime<Utc>) -> (Waiting, DoneBy<T>) {
        let done = self.task.work(run, lane, &row.due, self.today(), deadline).await;
        (row, done)
    }
}

impl<O: Outcome> Walk<O> {
    fn new(from: Position) -> Self {
        Self {
            counts: O::Counts::default(),
            totals: Totals::default(),
            failures: Vec::new(),
            reached: from,
            is_complete: false,
            stopped: None,
            held_back: None,
            read: 0,
            unbegun: None,
        }
    }

    /// Whether more may be begun.
    fn goes_on(&self) -> bool {
        self.stopped.is_none() && self.unbegun.is_none()
    }

    /// Takes in the rows of `page`. Answers whether it was the last one.
    fn take_in(&mut self, page: DuePage, lane: Lane, queue: &mut Queue) -> bool {
        let mut before = Arc::new(self.reached.clone());
        for row in page.rows {
            // Counted from the index, before anything is done: a row whose outcome got lost would show.
            *self.counts.due() += 1;
            let position = Arc::new(row.position.in_lane(lane));
            match row.due {
                Ok(due) => queue.push(Waiting { place: self.read, before, due }),
                // It is reported once, in the first lane.
                Err(_) if lane != Lane::Due => *self.counts.due() -= 1,
                Err(error) => self.fail(format!("{} {}", position.pk, position.sk), error.to_string()),
            }
            self.read += 1;
            before = position;
        }
        self.reached = page.next.clone().map_or_else(|| before.as_ref().clone(), |next| next.in_lane(lane));
        page.next.is_none()
    }

    /// The walk ends, with what is still in `queue` not begun. Answers whether all was begun that was read.
    fn end(&mut self, queue: Queue) -> bool {
        let (first, left) = queue.abandon();
        *self.counts.due() -= u64::try_from(left).unwrap_or(0);
        if let Some(first) = first {
            self.leave(first);
        }
        match self.unbegun.take() {
            Some((_, before)) => {
                // What was begun after it will be looked at twice, and be found done.
                self.reached = before.as_ref().clone();
                false
            }
            None => self.stopped.is_none(),
        }
    }

    /// `row` was not begun.
    fn leave(&mut self, row: Waiting) {
        if self.unbegun.as_ref().is_none_or(|(place, _)| row.place < *place) {
            self.unbegun = Some((row.place, row.before));
        }
    }

    fn fail(&mut self, key: String, reason: String) {
        tracing::error!(%key, %reason, "a row failed");
        *self.counts.failed() += 1;
        if self.failures.len() < MAX_FAILURES_NAMED {
            self.failures.push(Failure { key, reason });
        }
    }

    fn count(&mut self, row: Waiting, done: Done<O>) {
        if done.is_uncounted() {
            *self.counts.due() -= 1;
        }
        match done {
            Done::Counted(outcome) => *outcome.count(&mut self.counts) += 1,
            Done::PassedBy => {}
            Done::OutOfTime => self.leave(row),
            Done::HeldBack { counted, reason } => {
                *counted.count(&mut self.counts) += 1;
                if self.held_back.is_none() {
                    tracing::warn!(%reason, "the run holds back");
                    self.held_back = Some(reason);
                }
            }
            Done::Stop { counted, reason } => {
                tracing::error!(key = %row.due.key.key(), %reason, "the run stops");
                self.stopped = Some(reason);
                match counted {
                    Some(outcome) => *outcome.count(&mut self.counts) += 1,
                    None => self.leave(row),
                }
            }
            Done::Failed { reason } => self.fail(row.due.key.key().to_string(), reason),
        }
    }
}
