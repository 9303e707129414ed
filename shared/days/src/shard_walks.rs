//! The runs of one shard for one date, and where they lead to.

use serde::Serialize;
use strum::{Display, EnumIter};

use store::{Position, RunEnd, RunRecord};

/// What the records of one shard prove of its day.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Display, EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "How far a shard was walked on a day: `complete` if runs lead from its start to its end and left nothing behind; `running` if\n\
            it was complete and another run is walking it; `open` if a run has begun and not ended; `missing` without a run; `gap` if one\n\
            went on from where none had ended; `unfinished` if none came to the end; `stopped` if a run stopped or held back and none was\n\
            complete since; `left_behind` if the last walk left rows failed, in doubt or under another worker's lease; `rejected` if the\n\
            gateway refused a charge; `expired` if records of that day have expired. A complete shard is so no longer when a later run\n\
            of the day stops, leaves rows or is cut off, until it is walked to its end for that date or a later one."
    )
)]
pub enum Walked {
    /// Runs chain from its start to its end, and left nothing behind.
    Complete,
    /// It was complete, and another run is walking it.
    Running,
    /// There is no record of it.
    Missing,
    /// A run has begun and not ended: it goes on, or was cut off.
    Open,
    /// A run went on from where no other had ended.
    Gap,
    /// No run has come to its end: it ran out of time.
    Unfinished,
    /// A run stopped by itself, or held back.
    Stopped,
    /// Runs came to its end and left rows that failed, are in doubt or are under another worker's lease.
    LeftBehind,
    /// A run rejected a row: the gateway refused the request, and a person must look.
    Rejected,
    /// Records of that day have expired, and those that are left prove nothing.
    Expired,
}

/// The runs of one shard for one date.
pub(super) struct ShardWalks<'a> {
    pub records: Vec<&'a RunRecord>,
}

impl<'a> ShardWalks<'a> {
    pub fn ends(&self) -> impl Iterator<Item = &'a RunEnd> {
        self.records.iter().filter_map(|record| record.end.as_ref())
    }

    /// Whether clean runs lead from the shard's start to its end.
    pub fn is_complete(&self) -> bool {
        self.leads_to_the_end(None, None)
    }

    /// The runs that no clean runs have followed to the shard's end, from where they began.
    pub fn unfinished(&self) -> Vec<&'a RunRecord> {
        let is_unfinished = |run: &&&RunRecord| !self.leads_to_the_end(from(run), Some(run));
        self.records.iter().filter(is_unfinished).copied().collect()
    }

    /// Whether clean runs lead from `start` to the shard's end: those that ended after `run` began, `run` among them; all of
    /// them without a `run`.
    pub fn leads_to_the_end(&self, start: Option<&'a Position>, run: Option<&RunRecord>) -> bool {
        let counts = |record: &RunRecord| {
            let is_clean = |end: &RunEnd| end.stopped.is_none() && end.counts.left_behind() == 0;
            record.end.as_ref().is_some_and(|end| is_clean(end) && run.is_none_or(|run| is_after(record, end, run)))
        };
        let reached = self.reached(start, counts);
        let is_last = |record: &&RunRecord| record.end.as_ref().is_some_and(|end| end.next.is_none());
        self.records.iter().any(|record| reached.contains(&from(record)) && counts(record) && is_last(record))
    }

    /// Where the runs that `counts` allows lead to, from `start` on.
    fn reached(&self, start: Option<&'a Position>, counts: impl Fn(&RunRecord) -> bool) -> Vec<Option<&'a Position>> {
        let mut reached = vec![start];
        loop {
            let is_reached = |record: &&&RunRecord| reached.contains(&from(record)) && counts(record);
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

    /// Why the shard is not complete, by those of its runs that are `unfinished`.
    pub fn incomplete(&self, unfinished: &[&RunRecord]) -> Walked {
        let ends = || unfinished.iter().filter_map(|record| record.end.as_ref());
        if ends().any(|end| end.stopped.is_some()) {
            return Walked::Stopped;
        }
        if ends().any(|end| end.counts.left_behind() > 0) {
            return Walked::LeftBehind;
        }
        if unfinished.iter().any(|record| record.end.is_none()) {
            return Walked::Open;
        }
        let reached = self.reached(None, |record| record.end.is_some());
        if self.records.iter().all(|record| reached.contains(&from(record))) { Walked::Unfinished } else { Walked::Gap }
    }
}

/// Whether `record`, which ended with `end`, is `run` or was still going on after `run` began.
fn is_after(record: &RunRecord, end: &RunEnd, run: &RunRecord) -> bool {
    let is_later = record.id > run.id && record.started_at >= run.started_at;
    record.id == run.id || end.ended_at > run.started_at || is_later
}

/// The position a run began at; `None` is the shard's start.
fn from(record: &RunRecord) -> Option<&Position> {
    record.from.as_ref().filter(|position| !position.is_start())
}
