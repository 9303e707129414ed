//! Run records: one per invocation and shard, written open when the walk begins and closed when it ends.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use super::{Batch, Item, Key, Lane, Page, Paging, Position, RunCounts, Table, TableError, keys};
use billing::{Currency, Money, Sums};
use dynamo::List;
use dynamo::difference;
use dynamo::{Instant, from_item, to_item};
use dynamo::{PRESENT, UpdateAnswer};

/// One invocation's walk over one shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRecord {
    pub batch: Batch,
    pub on: NaiveDate,
    pub shard: u32,
    pub id: Ulid,
    pub started_at: DateTime<Utc>,
    /// Its time limit: it was cut off if it has not ended soon after. Absent from records of older versions.
    pub deadline: Option<DateTime<Utc>>,
    /// The number of shards that there were when it, or its daily execution, began. Absent from records of older versions.
    pub shards: Option<u32>,
    /// The position it went on from, if it did not begin at the shard's start.
    pub from: Option<Position>,
    /// `None` while it is open, and for ever if it was cut off.
    pub end: Option<RunEnd>,
}

/// How a walk ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunEnd {
    pub ended_at: DateTime<Utc>,
    pub counts: RunCounts,
    pub sums: RunSums,
    /// The position to go on from, in this lane or the next, if the shard's end was not reached.
    pub next: Option<Position>,
    /// Why it stopped by itself, or held back.
    pub stopped: Option<String>,
}

/// What the attempts that a walk has settled come to, by currency.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RunSums {
    pub paid: Sums,
    pub declined: Sums,
}

impl RunSums {
    /// Adds `other` to it.
    pub fn add(&mut self, other: &RunSums) {
        self.paid.extend(other.paid.iter());
        self.declined.extend(other.declined.iter());
    }
}

impl RunRecord {
    /// The lane that it walked.
    pub fn lane(&self) -> Lane {
        self.from.as_ref().map_or(Lane::Due, |from| from.lane)
    }

    /// Whether it came to the end of its lane.
    pub fn is_complete(&self) -> bool {
        let is_past = |next: &Position| next.lane > self.lane();
        self.end.as_ref().is_some_and(|end| end.next.as_ref().is_none_or(is_past))
    }
}

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RunItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    batch: Batch,
    date: NaiveDate,
    shard_no: u32,
    run_id: Ulid,
    started_at: Instant,
    deadline: Option<Instant>,
    shards: Option<u32>,
    from_position: Option<Position>,
    ended_at: Option<Instant>,
    counts: Option<RunCounts>,
    /// Minor units by currency, here and below; absent when there are none.
    paid: Option<BTreeMap<Currency, i64>>,
    declined: Option<BTreeMap<Currency, i64>>,
    next_position: Option<Position>,
    stopped: Option<String>,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl Table {
    /// Writes `run`, open unless it has ended already. PutItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_run(&self, run: &RunRecord) -> Result<(), TableError> {
        self.put(self.run_item(run)).await
    }

    /// Closes `opened` with `end`. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn close_run(&self, opened: &RunRecord, end: RunEnd) -> Result<(), TableError> {
        let closed = RunRecord { end: Some(end), ..opened.clone() };
        let Some(change) = difference(&self.run_item(opened), self.run_item(&closed)) else { return Ok(()) };
        let key = keys::run(opened.batch, opened.on, opened.shard, opened.id);
        let update = self.update_of(key.clone(), &change.update, PRESENT, change.values);
        match self.update(update, ReturnValue::None).await? {
            UpdateAnswer::Done(_) => Ok(()),
            UpdateAnswer::Refused(_) => Err(TableError::Missing { key }),
        }
    }

    /// The runs of `batch` on a date, by shard and time, as many as `paging` asks for. Query `PK = RUN#<batch>#<date>`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_runs_by_date(
        &self,
        batch: Batch,
        on: NaiveDate,
        paging: &Paging,
    ) -> Result<Page<RunRecord>, TableError> {
        let list = List::of(keys::runs(batch, on), keys::RUNS);
        self.list(&list, paging).await?.read(|item| from_item::<RunItem>(&item).map(RunRecord::from)).whole()
    }

    /// The runs of one shard of `batch` on a date, by time. Query `PK = RUN#<batch>#<date> AND begins_with(SK,
    /// "SHARD#<shard>#")`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_runs_of_shard(
        &self,
        batch: Batch,
        on: NaiveDate,
        shard: u32,
    ) -> Result<Vec<RunRecord>, TableError> {
        let list = List::of(keys::runs(batch, on), keys::runs_of_shard(shard));
        let runs = self.list(&list, &Paging::all()).await?.items;
        runs.iter().map(|item| from_item::<RunItem>(item).map(RunRecord::from)).collect()
    }

    fn run_item(&self, run: &RunRecord) -> Item {
        let Key { pk, sk } = keys::run(run.batch, run.on, run.shard, run.id);
        let end = run.end.as_ref();
        to_item(&RunItem {
            pk,
            sk,
            batch: run.batch,
            date: run.on,
            shard_no: run.shard,
            run_id: run.id,
            started_at: Instant(run.started_at),
            deadline: run.deadline.map(Instant),
            shards: run.shards,
            from_position: run.from.clone(),
            ended_at: end.map(|e| Instant(e.ended_at)),
            counts: end.map(|e| e.counts),
            paid: end.and_then(|e| by_currency(&e.sums.paid)),
            declined: end.and_then(|e| by_currency(&e.sums.declined)),
            next_position: end.and_then(|e| e.next.clone()),
            stopped: end.and_then(|e| e.stopped.clone()),
            ttl: run.started_at.timestamp() + self.receipts_kept.num_seconds(),
        })
    }
}

fn by_currency(sums: &Sums) -> Option<BTreeMap<Currency, i64>> {
    Some(sums.iter().map(|sum| (sum.currency(), sum.minor())).collect()).filter(|all: &BTreeMap<_, _>| !all.is_empty())
}

fn sums(by_currency: Option<BTreeMap<Currency, i64>>) -> Sums {
    by_currency.into_iter().flatten().map(|(currency, minor)| Money::new(minor, currency)).collect()
}

impl From<RunItem> for RunRecord {
    fn from(item: RunItem) -> Self {
        let (next, stopped) = (item.next_position, item.stopped);
        let end = item.ended_at.map(|ended_at| RunEnd {
            ended_at: ended_at.0,
            counts: item.counts.unwrap_or(RunCounts::none(item.batch)),
            sums: RunSums { paid: sums(item.paid), declined: sums(item.declined) },
            next,
            stopped,
        });
        Self {
            batch: item.batch,
            on: item.date,
            shard: item.shard_no,
            id: item.run_id,
            started_at: item.started_at.0,
            deadline: item.deadline.map(|deadline| deadline.0),
            shards: item.shards,
            from: item.from_position,
            end,
        }
    }
}
