//! The state of a walk over one lane of a shard: its counts, and its position in the index.

use std::sync::Arc;

use chrono::NaiveDate;

use super::report::MAX_LISTED_FAILURES;
use super::row_log::RowLog;
use super::row_queue::{QueuedRow, RowQueue};
use super::{FailedRow, Outcome, RowResult};
use store::{DueEntry, DueIndexPosition, DuePage, Lane, OutcomeCounts as _};

/// The state of a walk over one lane of a shard.
pub(super) struct ShardWalk<O: Outcome> {
    pub counts: O::Counts,
    pub totals: O::Totals,
    pub failures: Vec<FailedRow>,
    /// The position in the index up to which pages were read. At the end of the walk: the position after which a later
    /// walk must continue.
    pub reached: DueIndexPosition,
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
    first_not_started: Option<(u64, Arc<DueIndexPosition>)>,
}

impl<O: Outcome> ShardWalk<O> {
    /// Creates the state of a walk that begins at the position `from`.
    pub fn new(from: DueIndexPosition, log: RowLog) -> Self {
        Self {
            counts: O::Counts::default(),
            totals: O::Totals::default(),
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
    pub fn may_continue(&self) -> bool {
        self.stopped.is_none() && self.first_not_started.is_none()
    }

    /// Adds the rows of `page` to the queue. Returns whether this was the last page.
    pub fn add_page_to_queue(&mut self, page: DuePage, lane: Lane, queue: &mut RowQueue) -> bool {
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
    pub fn finish_walk(&mut self, queue: RowQueue) -> bool {
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
            self.failures.push(FailedRow { key, reason });
        }
    }

    /// Counts and logs the processed row `due` with its `outcome`.
    fn add_outcome(&mut self, due: &DueEntry, outcome: O) {
        self.log.log_outcome(due, outcome);
        *outcome.counter_in(&mut self.counts) += 1;
    }

    /// Adds the `result` of the processed `row` to the counts of the walk. Writes a log line if the row has an outcome,
    /// has failed or stops the run. A row that was not started, or that the other lane counts, is removed from the
    /// number of due rows.
    pub fn add_result(&mut self, row: QueuedRow, result: RowResult<O>) {
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
