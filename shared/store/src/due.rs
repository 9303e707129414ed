//! Due lists: getDueRemindersByDate, getDuePaymentsByDate.

use chrono::NaiveDate;

use super::items::DueItem;
use super::{Batch, Due, Item, Position, Table, TableError};
use dynamo::{Index, Query, n, s, values};

/// One row of a due list, readable or not, and where it stands in the index.
#[derive(Debug)]
pub struct Row {
    pub position: Position,
    pub due: Result<Due, TableError>,
}

/// A page of a due list.
#[derive(Debug)]
pub struct DuePage {
    pub rows: Vec<Row>,
    /// Where the shard goes on, as DynamoDB says; `None` at its end. A page may be empty and go on.
    pub next: Option<Position>,
}

/// A part of a due list over all shards.
#[derive(Debug)]
pub struct DueList {
    pub rows: Vec<Row>,
    /// Where the list goes on; `None` at its end.
    pub next: Option<Position>,
}

impl Table {
    /// What `batch` would find on a date in shards 0 to `shards`, one after the other: at most `limit` rows, going on
    /// after `after`. For those who look; a sweep walks shard by shard.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn get_due_by_date(
        &self,
        batch: Batch,
        shards: u32,
        on: NaiveDate,
        mut after: Option<Position>,
        limit: usize,
    ) -> Result<DueList, TableError> {
        let mut rows: Vec<Row> = Vec::new();
        let first = after.as_ref().map_or(0, |position| position.shard);
        for shard in first..shards {
            loop {
                // One more than asked for tells whether there are more.
                let wanted = limit.saturating_sub(rows.len()).saturating_add(1);
                let wanted = i32::try_from(wanted).unwrap_or(i32::MAX);
                let page = match batch {
                    Batch::Reminders => self.get_due_reminders_by_date(shard, on, after.as_ref(), wanted).await?,
                    Batch::Payments => self.get_due_payments_by_date(shard, on, after.as_ref(), wanted).await?,
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

    /// getDueRemindersByDate: Query GSI-1 `Shard = <shard> AND NextReminderDate <= <date>`, oldest first, at most
    /// `limit` rows, going on after `after`. Eventually consistent: a hint, never a basis for a write.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn get_due_reminders_by_date(
        &self,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        self.due_page(Batch::Reminders.index(), shard, on, after, limit).await
    }

    /// getDuePaymentsByDate: Query GSI-2 `Shard = <shard> AND NextPaymentDate <= <date>`, as
    /// [`Table::get_due_reminders_by_date`]. It returns what is due on the date and what an outage left behind.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn get_due_payments_by_date(
        &self,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        self.due_page(Batch::Payments.index(), shard, on, after, limit).await
    }

    async fn due_page(
        &self,
        index: &Index,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        let (partition, date) = (index.keys.partition.0, index.keys.sort.0);
        let keys = format!("#{partition} = :shard AND #{date} <= :today");
        let mut items = self.dynamo.query(Query {
            index: Some(index.name),
            page_items: usize::try_from(limit).ok(),
            after: after.map(|position| position.start_key(date)),
            ..Query::of(keys, values([(":shard", n(shard)), (":today", s(on))]))
        });
        let page = items.page().await?.unwrap_or_default();
        let position = |item: &Item| Position::of(shard, date, item);
        let row = |item| Row { position: position(item), due: DueItem::read(item) };
        Ok(DuePage { rows: page.iter().map(row).collect(), next: items.position().map(position) })
    }
}
