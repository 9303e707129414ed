//! Due lists: the subscriptions that are due for a batch, read from its index. This module contains the access patterns
//! getDueRemindersByDate and getDuePaymentsByDate.

use chrono::NaiveDate;

use super::items::DueItem;
use super::{Batch, Due, Item, Position, Table, TableError};
use dynamo::{IndexSchema, Query, n, s, values};

/// One row of a due list and its position in the index. The row may be unreadable.
#[derive(Debug)]
pub struct DueRow {
    pub position: Position,
    /// The row; an error if its index entry cannot be read.
    pub due: Result<Due, TableError>,
}

/// One page of the due list of one shard.
#[derive(Debug)]
pub struct DuePage {
    pub rows: Vec<DueRow>,
    /// The position after which the next page of the shard starts; `None` at the end of the shard. A page may be empty
    /// even if it is not the last page.
    pub next: Option<Position>,
}

/// One list page of the due lists of all shards, one shard after the other.
#[derive(Debug)]
pub struct DueList {
    pub rows: Vec<DueRow>,
    /// The position after which the next list page starts; `None` at the end of the list.
    pub next: Option<Position>,
}

impl Table {
    /// Returns at most `limit` rows that are due for `batch` on or before the date `on`, in the shards 0 to `shards` -
    /// 1, one shard after the other. Starts after the position `after`; with `None`, at the first row. This function is
    /// for lists and forecasts; a batch run reads only one shard at a time.
    pub async fn get_due_by_date(
        &self,
        batch: Batch,
        shards: u32,
        on: NaiveDate,
        mut after: Option<Position>,
        limit: usize,
    ) -> Result<DueList, TableError> {
        let mut rows: Vec<DueRow> = Vec::new();
        let first = after.as_ref().map_or(0, |position| position.shard);
        for shard in first..shards {
            loop {
                // Request one row more than `limit`: if this row exists, the list has a next page.
                let limit_and_one = limit.saturating_sub(rows.len()).saturating_add(1);
                let limit_and_one = i32::try_from(limit_and_one).unwrap_or(i32::MAX);
                let page = match batch {
                    Batch::Reminders => {
                        self.get_due_reminders_by_date(shard, on, after.as_ref(), limit_and_one).await?
                    }
                    Batch::Payments => self.get_due_payments_by_date(shard, on, after.as_ref(), limit_and_one).await?,
                };
                after = page.next;
                rows.extend(page.rows);
                if rows.len() > limit {
                    rows.truncate(limit);
                    let next = rows.last().map(|row| row.position.clone());
                    return Ok(DueList { rows, next });
                }
                if after.is_none() {
                    break;
                }
            }
            after = None;
        }
        Ok(DueList { rows, next: None })
    }

    /// getDueRemindersByDate: returns at most `limit` rows of `shard` that are due for a reminder, after the position
    /// `after`, the oldest date first. Sends a Query to GSI-1 with `Shard = <shard> AND NextReminderDate <= <date>`.
    /// The index is eventually consistent: the rows may be stale, so no write is computed from them.
    pub async fn get_due_reminders_by_date(
        &self,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        self.read_due_page(Batch::Reminders.index(), shard, on, after, limit).await
    }

    /// getDuePaymentsByDate: like [`Table::get_due_reminders_by_date`], for payments. Sends a Query to GSI-2 with
    /// `Shard = <shard> AND NextPaymentDate <= <date>`. Rows of earlier dates are also returned, because an outage may
    /// have prevented the runs of those dates.
    pub async fn get_due_payments_by_date(
        &self,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        self.read_due_page(Batch::Payments.index(), shard, on, after, limit).await
    }

    /// Reads one page of the rows of `shard` in `index` whose date is `on` or earlier.
    async fn read_due_page(
        &self,
        index: &IndexSchema,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        let (partition, date_attribute) = (index.keys.partition.0, index.keys.sort.0);
        let key_condition = format!("#{partition} = :shard AND #{date_attribute} <= :today");
        let mut items = self.dynamo.query(Query {
            index: Some(index.name),
            page_items: usize::try_from(limit).ok(),
            after: after.map(|position| position.start_key(date_attribute)),
            ..Query::new(key_condition, values([(":shard", n(shard)), (":today", s(on))]))
        });
        let page = items.page().await?.unwrap_or_default();
        let position = |item: &Item| Position::from_index_item(shard, date_attribute, item);
        let row = |item| DueRow { position: position(item), due: DueItem::read(item) };
        Ok(DuePage { rows: page.iter().map(row).collect(), next: items.last_evaluated_key().map(position) })
    }
}
