//! A walk: one shard of the index, page by page, each row once.

use chrono::{DateTime, NaiveDate, Utc};

use super::run::MAX_FAILURES_NAMED;
use super::{Done, Failure, Sweep, SweepError, Task};
use crate::table::{Counts, Position, RunEnd, TableError};

/// One shard's walk, as it goes.
pub(super) struct Walk<C> {
    pub counts: C,
    pub failures: Vec<Failure>,
    /// The position after which nothing has been begun.
    pub reached: Position,
    pub is_complete: bool,
    pub stopped: Option<String>,
    pub held_back: Option<String>,
}

impl<T: Task> Sweep<T> {
    /// Walks a lane of a shard on from `from`, and keeps a record of it. `after` is where the shard goes on after the lane.
    pub(super) async fn walk(
        &self,
        on: NaiveDate,
        from: Position,
        after: Option<Position>,
        deadline: DateTime<Utc>,
    ) -> Result<Walk<T::Counts>, SweepError> {
        let Position { lane, shard, .. } = from;
        let run = self.new_run(on, shard, Some(from.clone()).filter(|from| !from.is_start()));
        self.table.put_run(&run).await?;
        let mut walk = Walk::new(from);
        if let Err(error) = self.pages(on, deadline, &mut walk).await {
            tracing::error!(%error, shard, ?lane, "a walk was cut short");
            walk.stopped = Some(error.to_string());
        }
        let end = RunEnd {
            ended_at: self.clock.now(),
            counts: walk.counts.into(),
            next: if walk.is_complete { after } else { Some(walk.reached.clone()) },
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
        deadline: DateTime<Utc>,
        walk: &mut Walk<T::Counts>,
    ) -> Result<(), TableError> {
        let Position { lane, shard, .. } = walk.reached;
        loop {
            if self.clock.now() >= deadline {
                return Ok(());
            }
            let after = Some(&walk.reached).filter(|position| !position.is_start_of_lane());
            let page = self.task.page(&self.table, shard, on, after, self.limits.page_rows).await?;
            let positions: Vec<Position> = page.rows.iter().map(|row| row.position.clone()).collect();
            // Counted from the index, before anything is done: a row whose outcome got lost would show.
            *walk.counts.due() += u64::try_from(positions.len()).unwrap_or(u64::MAX);
            let mut first_unbegun = None;
            for (place, key, done) in self.work(lane, page.rows, deadline).await {
                if done.is_uncounted() {
                    *walk.counts.due() -= 1;
                }
                if done.is_unbegun() {
                    first_unbegun = Some(first_unbegun.map_or(place, |first: usize| first.min(place)));
                }
                walk.count(key, done);
            }
            self.task.page_done(&self.table, shard, self.today()).await?;
            // What was begun after the first row that was not will be looked at twice, and be found done.
            let begun = first_unbegun.unwrap_or(positions.len());
            let last_begun = begun.checked_sub(1).and_then(|last| positions.into_iter().nth(last));
            let whole_page = page.next.clone().filter(|_| first_unbegun.is_none());
            if let Some(reached) = whole_page.or(last_begun) {
                walk.reached = reached.in_lane(lane);
            }
            if first_unbegun.is_some() || walk.stopped.is_some() {
                return Ok(());
            }
            if page.next.is_none() {
                walk.is_complete = true;
                return Ok(());
            }
        }
    }
}

impl<C: Counts> Walk<C> {
    fn new(from: Position) -> Self {
        Self {
            counts: C::default(),
            failures: Vec::new(),
            reached: from,
            is_complete: false,
            stopped: None,
            held_back: None,
        }
    }

    fn count(&mut self, key: String, done: Done<C::Outcome>) {
        match done {
            Done::Counted(outcome) => *self.counts.of(outcome) += 1,
            Done::OutOfTime | Done::PassedBy => {}
            Done::HeldBack { counted, reason } => {
                *self.counts.of(counted) += 1;
                if self.held_back.is_none() {
                    tracing::warn!(%reason, "the run holds back");
                    self.held_back = Some(reason);
                }
            }
            Done::Stop { counted, reason } => {
                tracing::error!(%key, %reason, "the run stops");
                self.stopped = Some(reason);
                if let Some(outcome) = counted {
                    *self.counts.of(outcome) += 1;
                }
            }
            Done::Failed { reason } => {
                tracing::error!(%key, %reason, "a row failed");
                *self.counts.failed() += 1;
                if self.failures.len() < MAX_FAILURES_NAMED {
                    self.failures.push(Failure { key, reason });
                }
            }
        }
    }
}
