//! A walk processes the rows of one lane (due rows, or open payment attempts) of one shard, page by page, each row
//! once. The walk reads a page while the rows of earlier pages are being processed, so that a row waits only for other
//! rows of its account.

use std::pin::pin;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use futures::future::{Fuse, FusedFuture as _, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};

use super::queue::{QueuedRow, RowQueue};
use super::row_log::RowLog;
use super::run::{MAX_LISTED_FAILURES, RunScope};
use super::{Failure, Outcome, RowResult, RowResultOf, RunTotals, Sweep, SweepError, Task};
use store::{Counts as _, Due, DuePage, Lane, Position, RunEnd, TableError};

/// The state of a walk over one lane of a shard.
pub(super) struct ShardWalk<O: Outcome> {
    pub counts: O::Counts,
    pub totals: RunTotals,
    pub failures: Vec<Failure>,
    /// The position in the index up to which pages were read. At the end of the walk: the position after which a later
    /// walk must continue.
    pub reached: Position,
    /// Whether the walk has reached the end of its lane, and has started all rows.
    pub is_complete: bool,
    /// The reason, other than the time limit, why the walk stopped early; `None` if there is no such reason.
    pub stopped: Option<String>,
    /// The reason why rows were deferred to a later run; `None` if no row was deferred.
    pub deferred: Option<String>,
    /// The earliest date on which a row of the walk became due; `None` if no row could be processed.
    pub oldest_due: Option<NaiveDate>,
    log: RowLog,
    /// The number of rows that the walk has read.
    rows_read: u64,
    /// The first row, in the order of the index, that the walk has read but could not start: the number of the row in
    /// the walk, and the position of the index entry before the row.
    first_not_started: Option<(u64, Arc<Position>)>,
}

impl<T: Task> Sweep<T> {
    /// Processes the rows of one lane of a shard from the position `from`, as a part of `run`, and writes the run
    /// record. `next_lane_start` is the start of the shard's next lane; `None` if this is the last lane.
    pub(super) async fn walk(
        &self,
        scope: &RunScope,
        run: &T::Run,
        from: Position,
        next_lane_start: Option<Position>,
    ) -> Result<ShardWalk<T::Outcome>, SweepError> {
        let Position { lane, shard, .. } = from;
        let record = self.new_run_record(scope, shard, Some(from.clone()).filter(|from| !from.is_start()));
        self.table.put_run_record(&record).await?;
        let mut walk = ShardWalk::new(from, RowLog { batch: Self::BATCH, run: record.id, shard });
        if let Err(error) = self.process_pages(scope, run, &mut walk).await {
            tracing::error!(%error, error_type = "Table", shard, ?lane, "a walk over a shard stopped because of an error");
            walk.stopped = Some(error.to_string());
        }
        self.monitor.end_walk(walk.counts.into());
        walk.totals = self.task.take_totals(run);
        let end = RunEnd {
            ended_at: self.clock.now(),
            counts: walk.counts.into(),
            sums: walk.totals.sums.clone(),
            next: if walk.is_complete { next_lane_start } else { Some(walk.reached.clone()) },
            stopped: walk.stopped.clone().or_else(|| walk.deferred.clone()),
        };
        if let Err(error) = self.table.close_run_record(&record, end).await {
            tracing::error!(%error, error_type = "Table", shard, "could not close a run record");
        }
        Ok(walk)
    }

    /// Processes the rows from the position of `walk` to the end of the lane, or until the walk must stop. Always waits
    /// for the rows that were started.
    async fn process_pages(
        &self,
        scope: &RunScope,
        run: &T::Run,
        walk: &mut ShardWalk<T::Outcome>,
    ) -> Result<(), TableError> {
        let Position { lane, shard, .. } = walk.reached;
        let read_ahead = usize::try_from(self.limits.page_rows).unwrap_or(1);
        let mut queue = RowQueue::default();
        let mut in_progress = FuturesUnordered::new();
        let mut page_request = pin!(Fuse::terminated());
        let (mut is_last_page, mut read_error) = (false, None);
        loop {
            if self.monitor.is_end_requested() {
                walk.stopped.get_or_insert_with(|| "ended by the operator".to_owned());
            }
            let may_continue = walk.may_continue() && self.clock.now() < scope.deadline;
            while may_continue && in_progress.len() < self.limits.concurrency.max(1) {
                let Some(row) = queue.take_next() else { break };
                in_progress.push(self.process_row(run, lane, row, scope.deadline));
            }
            let is_reading = !page_request.is_terminated();
            if may_continue && !is_last_page && read_error.is_none() && !is_reading && queue.len() < read_ahead {
                page_request.set(self.read_page(run, scope.on, walk.reached.clone()).fuse());
            }
            tokio::select! {
                // A fixed order makes walks reproducible: the same responses in the same order lead to the same walk.
                biased;
                Some((row, result)) = in_progress.next() => {
                    queue.release_account(&row.due.key.account);
                    walk.add_result(row, result);
                    self.monitor.set_current_walk(walk.counts.into());
                }
                page = &mut page_request, if !page_request.is_terminated() => match page {
                    Ok(page) => is_last_page = walk.add_page_to_queue(page, lane, &mut queue),
                    Err(error) => read_error = Some(error),
                },
                else => break,
            }
        }
        drop(in_progress);
        let all_started = walk.finish(queue);
        walk.is_complete = is_last_page && all_started;
        let saved = self.task.write_charge_total(run, shard, self.today()).await;
        read_error.map_or(saved, Err)
    }

    /// Reads the page of rows after the position `after`. At the same time, writes the charges of the rows that are
    /// already processed to the charge total of the day.
    async fn read_page(&self, run: &T::Run, on: NaiveDate, after: Position) -> Result<DuePage, TableError> {
        let shard = after.shard;
        let after = Some(&after).filter(|position| !position.is_start_of_lane());
        let page = self.task.read_page(run, &self.table, shard, on, after, self.limits.page_rows);
        let (saved, page) = futures::join!(self.task.write_charge_total(run, shard, self.today()), page);
        saved.and(page)
    }

    /// Processes `row`. Returns the row with its result.
    async fn process_row(
        &self,
        run: &T::Run,
        lane: Lane,
        row: QueuedRow,
        deadline: DateTime<Utc>,
    ) -> (QueuedRow, RowResultOf<T>) {
        let result = self.task.work_on_row(run, lane, &row.due, self.today(), deadline).await;
        (row, result)
    }
}

impl<O: Outcome> ShardWalk<O> {
    /// Creates the state of a walk that begins at the position `from`.
    fn new(from: Position, log: RowLog) -> Self {
        Self {
            counts: O::Counts::default(),
            totals: RunTotals::default(),
            failures: Vec::new(),
            reached: from,
            is_complete: false,
            stopped: None,
            deferred: None,
            oldest_due: None,
            log,
            rows_read: 0,
            first_not_started: None,
        }
    }

    /// Returns whether the walk may start to process more rows.
    fn may_continue(&self) -> bool {
        self.stopped.is_none() && self.first_not_started.is_none()
    }

    /// Adds the rows of `page` to the queue. Returns whether this was the last page.
    fn add_page_to_queue(&mut self, page: DuePage, lane: Lane, queue: &mut RowQueue) -> bool {
        let mut before = Arc::new(self.reached.clone());
        for row in page.rows {
            // Count the row as due before it is processed: if its outcome is lost, the counts do not add up, so the
            // error is noticed.
            *self.counts.due() += 1;
            let position = Arc::new(row.position.in_lane(lane));
            match row.due {
                Ok(due) => queue.push(QueuedRow { read_number: self.rows_read, before, due }),
                // An unreadable row is reported and counted only in the first lane (due rows), not again in the second.
                Err(_) if lane != Lane::Due => *self.counts.due() -= 1,
                Err(error) => {
                    let (key, reason) = (format!("{} {}", position.pk, position.sk), error.to_string());
                    self.log.log_unreadable(&key, &reason);
                    self.add_failure(key, reason);
                }
            }
            self.rows_read += 1;
            before = position;
        }
        self.reached = page.next.clone().map_or_else(|| before.as_ref().clone(), |next| next.in_lane(lane));
        page.next.is_none()
    }

    /// Ends the walk; `queue` contains the rows that were not started. Returns whether every row that was read was also
    /// started, and no row has stopped the run.
    fn finish(&mut self, queue: RowQueue) -> bool {
        let (first, count) = queue.into_first_and_count();
        *self.counts.due() -= u64::try_from(count).unwrap_or(0);
        if let Some(first) = first {
            self.mark_row_not_started(first);
        }
        match self.first_not_started.take() {
            Some((_, before)) => {
                // The next walk begins with the first row that this walk did not start. The next walk also reads later
                // rows that this walk has processed already, and finds that these rows are not due any more.
                self.reached = before.as_ref().clone();
                false
            }
            None => self.stopped.is_none(),
        }
    }

    /// Records that the walk has read `row` but not started it.
    fn mark_row_not_started(&mut self, row: QueuedRow) {
        self.add_due_date(row.due.on);
        if self.first_not_started.as_ref().is_none_or(|(read_number, _)| row.read_number < *read_number) {
            self.first_not_started = Some((row.read_number, row.before));
        }
    }

    /// Stores `on`, the date on which a row became due, if it is the earliest such date of the walk.
    fn add_due_date(&mut self, on: NaiveDate) {
        self.oldest_due = Some(self.oldest_due.map_or(on, |oldest| oldest.min(on)));
    }

    /// Counts and lists a row whose processing failed.
    fn add_failure(&mut self, key: String, reason: String) {
        *self.counts.failed() += 1;
        if self.failures.len() < MAX_LISTED_FAILURES {
            self.failures.push(Failure { key, reason });
        }
    }

    /// Counts and logs the processed row `due` with its `outcome`.
    fn add_outcome(&mut self, due: &Due, outcome: O) {
        self.log.log_outcome(due, outcome);
        *outcome.count(&mut self.counts) += 1;
    }

    /// Adds the `result` of the processed `row` to the counts, and logs the row if its outcome is decided.
    fn add_result(&mut self, row: QueuedRow, result: RowResult<O>) {
        if result.is_uncounted() {
            *self.counts.due() -= 1;
        }
        if result.was_workable() {
            self.add_due_date(row.due.on);
        }
        match result {
            RowResult::Counted(outcome) => self.add_outcome(&row.due, outcome),
            RowResult::LeftToOtherLane => {}
            RowResult::OutOfTime => self.mark_row_not_started(row),
            RowResult::Deferred { counted, reason } => {
                self.add_outcome(&row.due, counted);
                if self.deferred.is_none() {
                    tracing::warn!(%reason, "the run leaves some rows to a later run");
                    self.deferred = Some(reason);
                }
            }
            RowResult::StopRun { counted, reason } => {
                tracing::error!(key = %row.due.key.key(), %reason, "the run stops");
                self.stopped = Some(reason);
                match counted {
                    Some(outcome) => self.add_outcome(&row.due, outcome),
                    None => self.mark_row_not_started(row),
                }
            }
            RowResult::Failed { error_type, reason } => {
                self.log.log_failure(&row.due, error_type, &reason);
                self.add_failure(row.due.key.key().to_string(), reason);
            }
        }
    }
}
