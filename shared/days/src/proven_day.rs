//! One day of one batch with the states of its shards.

use chrono::NaiveDate;

use store::Batch;

use super::{DayRecords, DayState, ShardProof};

/// One day of one batch: the states of its shards, as the run records prove them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProvenDay {
    pub batch: Batch,
    pub date: NaiveDate,
    pub shards: Vec<ShardProof>,
    /// The descriptions of the run records that cannot be read.
    pub unreadable: Vec<String>,
}

impl ProvenDay {
    /// Returns the state of the day over all shards.
    pub fn state(&self) -> DayState {
        DayState::from_proofs(&self.shards)
    }

    /// Returns the number of complete shards.
    pub fn complete_shards(&self) -> usize {
        self.shards.iter().filter(|shard| shard.is_complete()).count()
    }
}

impl From<DayRecords> for ProvenDay {
    fn from(day: DayRecords) -> Self {
        Self { batch: day.batch, date: day.on, shards: day.prove_shards(), unreadable: day.unreadable }
    }
}
