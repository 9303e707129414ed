//! The completeness proof: whether a batch's day was walked to its end, by its run records alone.
//!
//! Every invocation writes where it began, and where it ended. A shard is proved when a chain of such records leads from
//! its start to its end.

use serde::Serialize;
use strum::Display;

use crate::table::{Batch, Position, RunCounts, RunRecord};

/// What the records of one shard prove.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Walked {
    /// A chain of runs leads from its start to its end.
    Complete,
    /// There is no record of it.
    Missing,
    /// A run has begun and not ended: it goes on, or was cut off.
    Open,
    /// A run went on from where no other had ended.
    Gap,
    /// No run has come to its end: it stopped, or ran out of time.
    Unfinished,
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
    let mut last: Vec<&&RunRecord> = records.iter().collect();
    last.sort_by_key(|record| record.id);
    let stopped = last.into_iter().rev().find_map(|record| record.end.as_ref()?.stopped.clone());
    ShardProof {
        batch,
        shard,
        walked: walked(&records),
        runs: u64::try_from(records.len()).unwrap_or(u64::MAX),
        counts,
        adds_up: ends().all(|end| end.counts.adds_up()),
        stopped,
    }
}

fn walked(records: &[&RunRecord]) -> Walked {
    if records.is_empty() {
        return Walked::Missing;
    }
    if records.iter().any(|record| record.end.is_none()) {
        return Walked::Open;
    }
    // Where some run has ended, beginning with the start, which needs none.
    let mut reached: Vec<Option<&Position>> = vec![None];
    let mut left: Vec<&&RunRecord> = records.iter().collect();
    let mut is_complete = false;
    while let Some(index) = left.iter().position(|record| reached.contains(&from(record))) {
        let end = left.swap_remove(index).end.as_ref();
        match end.and_then(|end| end.next.as_ref()) {
            Some(next) => reached.push(Some(next).filter(|next| !next.is_start())),
            None => is_complete = true,
        }
    }
    match (left.is_empty(), is_complete) {
        (false, _) => Walked::Gap,
        (true, true) => Walked::Complete,
        (true, false) => Walked::Unfinished,
    }
}

/// The position a run began at; `None` is the shard's start.
fn from(record: &RunRecord) -> Option<&Position> {
    record.from.as_ref().filter(|position| !position.is_start())
}
