//! The completeness proof: whether a batch's day was done, by its run records alone.
//!
//! Every run writes where it began, and where it ended. A shard is proved when runs chain from its start to its end, none of
//! them stopped or leaving rows failed or in doubt, and no run of the day rejected a row. What was cut short before does not
//! matter then: a later run walked it again.

use serde::Serialize;
use strum::{Display, EnumIter};

use crate::table::{Batch, Position, RunCounts, RunEnd, RunRecord, RunSums};

/// What the records of one shard prove of its day.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Display, EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Walked {
    /// Runs chain from its start to its end, and left nothing behind.
    Complete,
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
    /// Runs came to its end and left rows that failed or are in doubt.
    LeftBehind,
    /// A run rejected a row: the gateway refused the request, and somebody must look.
    Rejected,
}

/// One shard's day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShardProof {
    pub batch: Batch,
    pub shard: u32,
    pub walked: Walked,
    /// The runs there were.
    pub runs: u64,
    /// What became of the rows all of them saw.
    pub counts: RunCounts,
    /// What the attempts that they settled come to.
    pub sums: RunSums,
    /// Whether every run accounts for all it saw.
    pub adds_up: bool,
    /// Why the last run that stopped did so.
    pub stopped: Option<String>,
}

impl ShardProof {
    /// Whether the day is proved to be done with.
    pub fn holds(&self) -> bool {
        self.walked == Walked::Complete && self.adds_up
    }

    /// The payments that were left in doubt or at the bank, or that failed, each time a run saw them.
    pub fn unsettled(&self) -> u64 {
        self.counts.unsettled()
    }
}

/// What `records`, all those of a day of `batch`, prove of each of its shards 0 to `shards`.
///
/// ```
/// use shared::audit::{Walked, prove};
/// use shared::table::Batch;
/// let nothing = prove(Batch::Payments, 2, &[]);
/// assert!(nothing.iter().all(|shard| shard.walked == Walked::Missing && !shard.holds()));
/// ```
pub fn prove(batch: Batch, shards: u32, records: &[RunRecord]) -> Vec<ShardProof> {
    (0..shards).map(|shard| prove_shard(batch, shard, records)).collect()
}

/// What those of `records`, all those of a day of `batch`, that are of `shard` prove of it.
pub(super) fn prove_shard(batch: Batch, shard: u32, records: &[RunRecord]) -> ShardProof {
    let records: Vec<&RunRecord> = records.iter().filter(|record| record.shard == shard).collect();
    let ends = || records.iter().filter_map(|record| record.end.as_ref());
    let counts = ends().fold(RunCounts::none(batch), |sum, end| sum.plus(end.counts));
    let mut sums = RunSums::default();
    ends().for_each(|end| sums.add(&end.sums));
    let mut last: Vec<&&RunRecord> = records.iter().collect();
    last.sort_by_key(|record| record.id);
    let stopped = last.into_iter().rev().find_map(|record| record.end.as_ref()?.stopped.clone());
    ShardProof {
        batch,
        shard,
        walked: walked(&records),
        runs: u64::try_from(records.len()).unwrap_or(u64::MAX),
        counts,
        sums,
        adds_up: ends().all(|end| end.counts.adds_up()),
        stopped,
    }
}

fn walked(records: &[&RunRecord]) -> Walked {
    let ends = || records.iter().filter_map(|record| record.end.as_ref());
    if records.is_empty() {
        return Walked::Missing;
    }
    if ends().any(|end| end.counts.rejected() > 0) {
        return Walked::Rejected;
    }
    let is_clean = |end: &RunEnd| end.stopped.is_none() && end.counts.left_behind() == 0;
    if chains(records, is_clean) {
        return Walked::Complete;
    }
    if ends().any(|end| end.stopped.is_some()) {
        return Walked::Stopped;
    }
    if ends().any(|end| end.counts.left_behind() > 0) {
        return Walked::LeftBehind;
    }
    if records.iter().any(|record| record.end.is_none()) {
        return Walked::Open;
    }
    let is_anything = |_: &RunEnd| true;
    let reached = reached(records, is_anything);
    if records.iter().all(|record| reached.contains(&from(record))) { Walked::Unfinished } else { Walked::Gap }
}

/// Whether the ended runs that `counts` allows lead from the shard's start to its end.
fn chains(records: &[&RunRecord], counts: impl Fn(&RunEnd) -> bool) -> bool {
    let reached = reached(records, &counts);
    records.iter().any(|record| {
        let is_last = |end: &RunEnd| end.next.is_none() && counts(end);
        reached.contains(&from(record)) && record.end.as_ref().is_some_and(is_last)
    })
}

/// Where the ended runs that `counts` allows lead to, from the shard's start on, which is `None`.
fn reached<'a>(records: &[&'a RunRecord], counts: impl Fn(&RunEnd) -> bool) -> Vec<Option<&'a Position>> {
    let mut reached: Vec<Option<&Position>> = vec![None];
    loop {
        let next = records.iter().filter(|record| reached.contains(&from(record))).find_map(|record| {
            let end = record.end.as_ref().filter(|end| counts(end))?;
            let next = end.next.as_ref().filter(|next| !next.is_start())?;
            (!reached.contains(&Some(next))).then_some(next)
        });
        match next {
            Some(next) => reached.push(Some(next)),
            None => return reached,
        }
    }
}

/// The position a run began at; `None` is the shard's start.
fn from(record: &RunRecord) -> Option<&Position> {
    record.from.as_ref().filter(|position| !position.is_start())
}
