//! The requests for run records. A walk is the part of a batch run that reads and processes the due rows of one shard.
//! Each walk has one run record, which is written when the walk begins, and closed when the walk ends.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use crate::items::{DueIndexPosition, Lane};
use crate::keys;
use crate::runs::counts::RunCounts;
use crate::table::batch::Batch;
use crate::table::payments_table::Table;
use billing::{Currency, Money, MoneySums, days_after};
use dynamo::PrefixQuery;
use dynamo::build_difference;
use dynamo::{Instant, TIME_TO_LIVE, from_item, key_of_item, to_item};
use dynamo::{Item, Key, Page, Paging, TableError};
use dynamo::{PRESENT, UpdateItemOutcome};

/// The run record of one walk: the part of a batch run that reads and processes the due rows of one shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRecord {
    pub batch: Batch,
    /// The date of the run: it processes the rows that are due on or before this date.
    pub on: NaiveDate,
    pub shard: u32,
    pub id: Ulid,
    pub started_at: DateTime<Utc>,
    /// The time at which the walk must end. If the walk has not ended soon after this time, it was cut off. `None` in a
    /// record that an older version of Dueday wrote.
    pub deadline: Option<DateTime<Utc>>,
    /// The table's number of shards when the run or its daily execution began. `None` in a record that an older version
    /// of Dueday wrote.
    pub shards: Option<u32>,
    /// The position at which the walk began; `None` for the start of the shard.
    pub from: Option<DueIndexPosition>,
    /// The end of the walk; `None` while the walk is running, or if it was cut off.
    pub end: Option<RunEnd>,
}

/// How a walk ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunEnd {
    pub ended_at: DateTime<Utc>,
    /// The number of the walk's rows for each outcome.
    pub counts: RunCounts,
    pub sums: RunSums,
    /// The position from which a later walk continues, in this lane (due payments or open attempts) or the next lane;
    /// `None` if the walk has completed the shard.
    pub next: Option<DueIndexPosition>,
    /// The reason, other than the time limit, why the walk stopped early or left some rows to a later run; `None` if
    /// there is no such reason.
    pub stopped: Option<String>,
}

/// The sums of the payments that a walk has settled as paid or declined, by currency.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RunSums {
    pub paid: MoneySums,
    pub declined: MoneySums,
}

impl RunSums {
    /// Adds the sums of `other`.
    pub fn add(&mut self, other: &RunSums) {
        self.paid.extend(other.paid.iter());
        self.declined.extend(other.declined.iter());
    }
}

impl RunRecord {
    /// Returns the lane of the walk: whether the walk processes due rows or open attempts.
    pub fn lane(&self) -> Lane {
        self.from.as_ref().map_or(Lane::Due, |from| from.lane)
    }

    /// Returns whether the walk has read all rows of its lane (due rows or open attempts) in this shard.
    pub fn is_complete(&self) -> bool {
        let is_in_later_lane = |next: &DueIndexPosition| next.lane > self.lane();
        self.end.as_ref().is_some_and(|end| end.next.as_ref().is_none_or(is_in_later_lane))
    }
}

/// The run records of one date, also those whose items cannot be read.
#[derive(Debug)]
pub struct StoredRuns {
    /// The run records in the order of their sort keys. A record that cannot be read counts as a run that was cut off
    /// when it started: only later runs can prove that its shard is complete.
    pub records: Vec<RunRecord>,
    /// One error for each item that cannot be read or contradicts its key.
    pub unreadable: Vec<TableError>,
}

/// The attributes of a run record's item.
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
    from_position: Option<DueIndexPosition>,
    ended_at: Option<Instant>,
    counts: Option<RunCounts>,
    /// The sum of the successful payments, in minor units by currency; absent if there were none.
    paid: Option<BTreeMap<Currency, i64>>,
    /// The sum of the declined payments, in minor units by currency; absent if there were none.
    declined: Option<BTreeMap<Currency, i64>>,
    next_position: Option<DueIndexPosition>,
    stopped: Option<String>,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl Table {
    /// Writes the run record `run`, and replaces a record with the same id. Sends one PutItem request.
    pub async fn put_run_record(&self, run: &RunRecord) -> Result<(), TableError> {
        self.put(self.build_run_item(run)).await
    }

    /// Closes the open run record `opened`: stores `end` in it. Sends one UpdateItem request.
    pub async fn close_run_record(&self, opened: &RunRecord, end: RunEnd) -> Result<(), TableError> {
        let closed = RunRecord { end: Some(end), ..opened.clone() };
        let Some(change) = build_difference(&self.build_run_item(opened), self.build_run_item(&closed)) else {
            return Ok(());
        };
        let key = keys::key_of_run(opened.batch, opened.on, opened.shard, opened.id);
        let update = self.build_update(key.clone(), &change.update, PRESENT, change.values);
        match self.send_update(update, ReturnValue::None).await? {
            UpdateItemOutcome::Updated(_) => Ok(()),
            UpdateItemOutcome::ConditionFailed(_) => Err(TableError::Missing { key }),
        }
    }

    /// Returns the run records of `batch` for the date `on`, in the order of their sort keys (shard number as text,
    /// then start time). Sends a Query with `PK = RUN#<batch>#<date>`.
    pub async fn get_runs_by_date(
        &self,
        batch: Batch,
        on: NaiveDate,
        paging: &Paging,
    ) -> Result<Page<RunRecord>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_runs(batch, on), keys::RUNS);
        Ok(self.list_items(&list, paging).await?.read(|item| read_run_record(&item)))
    }

    /// Returns the run records of `batch` for the date `on`, of all shards or only of `shard`. An item that cannot be
    /// read does not prevent reading the others. Sends a Query with `PK = RUN#<batch>#<date>`, and with a shard `AND
    /// begins_with(SK, "SHARD#<shard>#")`.
    pub async fn get_stored_runs(
        &self,
        batch: Batch,
        on: NaiveDate,
        shard: Option<u32>,
    ) -> Result<StoredRuns, TableError> {
        let prefix = shard.map_or_else(|| keys::RUNS.to_owned(), keys::sort_key_prefix_of_shard_runs);
        let list = PrefixQuery::new(keys::partition_key_of_runs(batch, on), prefix);
        let page = self.list_items(&list, &Paging::all()).await?.read(|item| read_run_record(&item));
        let (mut records, unreadable) = (page.items, page.unreadable);
        records.extend(unreadable.iter().filter_map(|error| cut_off_run(batch, on, error)));
        Ok(StoredRuns { records, unreadable })
    }

    /// Deletes the run records of both batches for the `days` after `today`, and returns their number. A clock that was ahead
    /// has written them: they prove nothing about these days. Sends a Query request for each batch and day, and a DeleteItem
    /// request for each record.
    pub async fn delete_runs_after(&self, today: NaiveDate, days: u32) -> Result<u64, TableError> {
        let mut deleted = 0;
        for day in (1..=days).map(|n| days_after(today, n)) {
            for batch in Batch::ALL {
                let list = PrefixQuery::new(keys::partition_key_of_runs(batch, day), keys::RUNS.to_owned());
                for item in self.list_items(&list, &Paging::all()).await?.items {
                    self.delete_item(key_of_item(&item)).await?;
                    deleted += 1;
                }
            }
        }
        Ok(deleted)
    }

    /// Returns the item of the run record `run`, with its expiry time.
    fn build_run_item(&self, run: &RunRecord) -> Item {
        item_of_run(run, run.started_at.timestamp() + self.receipt_retention().num_seconds())
    }
}

/// Returns the item of the run record `run`, which expires at `ttl`, in seconds since 1970.
fn item_of_run(run: &RunRecord, ttl: i64) -> Item {
    let Key { pk, sk } = keys::key_of_run(run.batch, run.on, run.shard, run.id);
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
        paid: end.and_then(|e| minor_by_currency(&e.sums.paid)),
        declined: end.and_then(|e| minor_by_currency(&e.sums.declined)),
        next_position: end.and_then(|e| e.next.clone()),
        stopped: end.and_then(|e| e.stopped.clone()),
        ttl,
    })
}

/// Returns the item that this program would store for the run record in `item`, without its TTL.
///
/// # Errors
/// [`TableError::Unreadable`] if the record cannot be read, or if its run has ended without counts.
pub(crate) fn check_run_record(item: &Item) -> Result<Item, TableError> {
    let stored: RunItem = from_item(item)?;
    if stored.ended_at.is_some() && stored.counts.is_none() {
        return Err(TableError::unreadable(key_of_item(item), "the run has ended, but has no counts"));
    }
    let mut expected = item_of_run(&read_run_record(item)?, 0);
    expected.remove(TIME_TO_LIVE);
    Ok(expected)
}

/// Reads a run record from its item.
///
/// # Errors
/// [`TableError::Unreadable`] if an attribute is missing or has another type, or if the record has the key of another
/// run. A record that was copied to another day must not prove that this day is done.
fn read_run_record(item: &Item) -> Result<RunRecord, TableError> {
    let (run, key) = (RunRecord::from(from_item::<RunItem>(item)?), key_of_item(item));
    match keys::key_of_run(run.batch, run.on, run.shard, run.id) == key {
        true => Ok(run),
        false => Err(TableError::unreadable(key, "its batch, date, shard or id is not the one in its key")),
    }
}

/// Returns the record of a run that was cut off, in place of the record whose item cannot be read because of `error`.
/// The key of the item contains the shard and the start time of the run. Returns `None` if the key contains no run.
fn cut_off_run(batch: Batch, on: NaiveDate, error: &TableError) -> Option<RunRecord> {
    let TableError::Unreadable { key, .. } = error else { return None };
    let (shard, id) = keys::parse_run_sort_key(&key.sk)?;
    let started_at = DateTime::from(id.datetime());
    let deadline = Some(started_at);
    Some(RunRecord { batch, on, shard, id, started_at, deadline, shards: None, from: None, end: None })
}

/// Converts `sums` to minor units by currency; `None` if `sums` is empty.
fn minor_by_currency(sums: &MoneySums) -> Option<BTreeMap<Currency, i64>> {
    Some(sums.iter().map(|sum| (sum.currency(), sum.minor())).collect()).filter(|all: &BTreeMap<_, _>| !all.is_empty())
}

/// Converts minor units by currency to sums.
fn sums_from_minor_units(minor_by_currency: Option<BTreeMap<Currency, i64>>) -> MoneySums {
    minor_by_currency.into_iter().flatten().map(|(currency, minor)| Money::new(minor, currency)).collect()
}

impl From<RunItem> for RunRecord {
    fn from(item: RunItem) -> Self {
        let (next, stopped) = (item.next_position, item.stopped);
        let end = item.ended_at.map(|ended_at| RunEnd {
            ended_at: ended_at.0,
            counts: item.counts.unwrap_or(RunCounts::none(item.batch)),
            sums: RunSums { paid: sums_from_minor_units(item.paid), declined: sums_from_minor_units(item.declined) },
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
