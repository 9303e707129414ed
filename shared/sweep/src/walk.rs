//! A walk processes the rows of one lane (due rows, or open payment attempts) of one shard, page by page, each row
//! once. The walk reads a page while the rows of earlier pages are being processed, so that a row waits only for other
//! rows of its account.

use std::pin::pin;

use chrono::{DateTime, NaiveDate, Utc};
use futures::future::{Fuse, FusedFuture as _, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};

use super::row_log::RowLog;
use super::row_queue::{QueuedRow, RowQueue};
use super::run::RunScope;
use super::shard_walk::ShardWalk;
use super::{BatchTask, RowResultOf, RunTotals as _, Sweep, SweepError, TotalsOf};
use store::{DueIndexPosition, DuePage, Lane, RunEnd, TableError};

impl<T: BatchTask> Sweep<T> {
    /// Processes the rows of one lane of a shard from the position `from`, as a part of `run`, and writes the run
    /// record. `next_lane_start` is the start of the shard's next lane; `None` if this is the last lane.
    pub(super) async fn walk_lane(
        &self,
        scope: &RunScope,
        run: &T::Run,
        from: DueIndexPosition,
        next_lane_start: Option<DueIndexPosition>,
    ) -> Result<ShardWalk<T::Outcome>, SweepError> {
        let DueIndexPosition { lane, shard, .. } = from;
        let record = self.new_run_record(scope, shard, Some(from.clone()).filter(|from| !from.is_start()));
        self.table.put_run_record(&record).await?;
        let mut walk = ShardWalk::new(from, RowLog { batch: Self::BATCH, run: record.id, shard });
        if let Err(error) = self.process_pages(scope, run, &mut walk).await {
            tracing::error!(%error, error_type = "Table", shard, ?lane, "a walk over a shard stopped because of an error");
            walk.stopped = Some(error.to_string());
        }
        self.monitor.end_walk(walk.counts.into());
        walk.totals.log_walk();
        let end = RunEnd {
            ended_at: self.clock.now(),
            counts: walk.counts.into(),
            sums: walk.totals.sums(),
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
        let DueIndexPosition { lane, shard, .. } = walk.reached;
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
                (totals, page) = &mut page_request, if !page_request.is_terminated() => {
                    walk.totals += totals;
                    match page {
                        Ok(page) => is_last_page = walk.add_page_to_queue(page, lane, &mut queue),
                        Err(error) => read_error = Some(error),
                    }
                }
                else => break,
            }
        }
        drop(in_progress);
        let all_started = walk.finish_walk(queue);
        walk.is_complete = is_last_page && all_started;
        let (totals, written) = self.task.after_page(run, Some(shard), self.today()).await;
        walk.totals += totals;
        read_error.map_or(written, Err)
    }

    /// Reads the page of rows after the position `after`. At the same time, calls [`BatchTask::after_page`] for the rows that
    /// are already processed. Returns their totals, and the page; an error if the read or the task's write failed.
    async fn read_page(
        &self,
        run: &T::Run,
        on: NaiveDate,
        after: DueIndexPosition,
    ) -> (TotalsOf<T>, Result<DuePage, TableError>) {
        let shard = after.shard;
        let after = Some(&after).filter(|position| !position.is_start_of_lane());
        let page = self.task.read_page(run, &self.table, shard, on, after, self.limits.page_rows);
        let ((totals, written), page) = futures::join!(self.task.after_page(run, Some(shard), self.today()), page);
        (totals, written.and(page))
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
