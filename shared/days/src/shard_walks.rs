//! The runs of one shard for one date, and the part of the shard that these runs have walked (read and processed).

use serde::Serialize;
use strum::{Display, EnumIter};

use store::{DueIndexPosition, RunEnd, RunRecord};

/// The state of one shard on one day, computed from its run records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Display, EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        as = Walked,
        description = "The state of a shard on a day, computed from the records of its runs. `complete`: a chain of \
            runs leads from the start of the shard to its end and left no row unfinished. `running`: the shard was \
            complete, and another run is processing it again. `missing`: there is no run. `open`: a run has begun and has \
            not ended; it is still running or was cut off. `gap`: a run began at a position at which no other run had \
            ended. `unfinished`: no run reached the end of the shard. `stopped`: a run stopped early or deferred rows, \
            and no later run has processed the whole shard. `left_behind`: the runs reached the end, but left rows \
            that failed, are in doubt or are leased by another worker. `rejected`: the gateway rejected a charge. \
            `expired`: run records of the day have expired. If a later run of the day stops early, leaves rows \
            unfinished or is cut off, a complete shard loses this state until runs have processed all of it again, \
            for the same date or a later one."
    )
)]
pub enum ShardState {
    /// A chain of runs leads from the start of the shard to its end, and left no row unfinished.
    Complete,
    /// The shard was complete, and another run is processing the shard again.
    Running,
    /// There is no record of a run of the shard.
    Missing,
    /// A run has begun and has not ended: it is still running, or was cut off.
    Open,
    /// A run began at a position at which no other run had ended.
    Gap,
    /// No run reached the end of the shard.
    Unfinished,
    /// A run stopped early or deferred rows (left them to a later run), and no later runs have processed the whole
    /// shard.
    Stopped,
    /// The runs reached the end of the shard, but left rows that failed, are in doubt or are leased by another worker.
    LeftBehind,
    /// The gateway rejected the charge of a row; a person must find the cause.
    Rejected,
    /// Run records of the day have expired, and the remaining records do not prove that the shard is complete.
    Expired,
}

/// The records of the runs that walked (read and processed) one shard for one date.
pub(super) struct ShardWalks<'a> {
    pub records: Vec<&'a RunRecord>,
}

impl<'a> ShardWalks<'a> {
    /// Returns the recorded ends of the runs. A run without a recorded end is left out.
    pub fn ends(&self) -> impl Iterator<Item = &'a RunEnd> {
        self.records.iter().filter_map(|record| record.end.as_ref())
    }

    /// Returns whether a chain of clean runs leads from the start of the shard to its end. A run is clean if it has
    /// ended, did not stop early, and left no row unfinished.
    pub fn is_complete(&self) -> bool {
        self.clean_runs_reach_end(None, None)
    }

    /// Returns the unfinished runs. A run is finished if a chain of clean runs leads from the first position of the run
    /// to the end of the shard. The chain may contain only the run itself, and runs that ended or began after its
    /// start.
    pub fn unfinished_runs(&self) -> Vec<&'a RunRecord> {
        let is_unfinished = |run: &&&RunRecord| !self.clean_runs_reach_end(start_position(run), Some(run));
        self.records.iter().filter(is_unfinished).copied().collect()
    }

    /// Returns whether a chain of clean runs leads from the position `start` (`None` for the start of the shard) to the
    /// end of the shard. If `run` is given, the chain may contain only `run` itself, and runs that ended or began after
    /// the start of `run`.
    pub fn clean_runs_reach_end(&self, start: Option<&'a DueIndexPosition>, run: Option<&RunRecord>) -> bool {
        let is_usable = |record: &RunRecord| {
            let is_clean = |end: &RunEnd| end.stopped.is_none() && end.counts.unfinished() == 0;
            record
                .end
                .as_ref()
                .is_some_and(|end| is_clean(end) && run.is_none_or(|run| is_same_or_later(record, end, run)))
        };
        let reached = self.reachable_positions(start, is_usable);
        let is_last = |record: &&RunRecord| record.end.as_ref().is_some_and(|end| end.next.is_none());
        self.records
            .iter()
            .any(|record| reached.contains(&start_position(record)) && is_usable(record) && is_last(record))
    }

    /// Returns `start`, and all positions to which a chain of runs leads from `start`. The chain contains only runs
    /// that `is_usable` accepts. The position `None` is the start of the shard.
    fn reachable_positions(
        &self,
        start: Option<&'a DueIndexPosition>,
        is_usable: impl Fn(&RunRecord) -> bool,
    ) -> Vec<Option<&'a DueIndexPosition>> {
        let mut reached = vec![start];
        loop {
            let is_reached = |record: &&&RunRecord| reached.contains(&start_position(record)) && is_usable(record);
            let next = self.records.iter().filter(is_reached).find_map(|record| {
                let next = record.end.as_ref()?.next.as_ref().filter(|next| !next.is_start())?;
                (!reached.contains(&Some(next))).then_some(next)
            });
            match next {
                Some(next) => reached.push(Some(next)),
                None => return reached,
            }
        }
    }

    /// Returns the state of a shard that is not complete. `unfinished` are the unfinished runs of the shard.
    pub fn incomplete_state(&self, unfinished: &[&RunRecord]) -> ShardState {
        let ends = || unfinished.iter().filter_map(|record| record.end.as_ref());
        if ends().any(|end| end.stopped.is_some()) {
            return ShardState::Stopped;
        }
        if ends().any(|end| end.counts.unfinished() > 0) {
            return ShardState::LeftBehind;
        }
        if unfinished.iter().any(|record| record.end.is_none()) {
            return ShardState::Open;
        }
        let reached = self.reachable_positions(None, |record| record.end.is_some());
        if self.records.iter().all(|record| reached.contains(&start_position(record))) {
            ShardState::Unfinished
        } else {
            ShardState::Gap
        }
    }
}

/// Returns whether the run `record`, whose end is `end`, is `run` itself, or ended or began after the start of `run`.
fn is_same_or_later(record: &RunRecord, end: &RunEnd, run: &RunRecord) -> bool {
    let is_later = record.id > run.id && record.started_at >= run.started_at;
    record.id == run.id || end.ended_at > run.started_at || is_later
}

/// Returns the position at which a run began; `None` for the start of the shard.
fn start_position(record: &RunRecord) -> Option<&DueIndexPosition> {
    record.from.as_ref().filter(|position| !position.is_start())
}
