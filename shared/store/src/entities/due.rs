//! Due lists: the subscriptions that are due for a batch, read from its index. This module contains the access patterns
//! getDueRemindersByDate and getDuePaymentsByDate.

use billing::{Money, PlannedPayment, Policy, Reminder, Subscription, last_payment_day_in_sight};
use chrono::NaiveDate;

use crate::entities::subscriptions::read_subscription;
use crate::items::DueItem;
use crate::items::{DueEntry, DueIndexPosition};
use crate::table::batch::Batch;
use crate::table::payments_table::Table;
use dynamo::{IndexSchema, Query, n, s, values};
use dynamo::{Item, TableError};

/// One row of a due list and its position in the index. The row may be unreadable.
#[derive(Debug)]
pub struct DueRow {
    pub position: DueIndexPosition,
    /// The row; an error if its index entry cannot be read.
    pub due: Result<DueEntry, TableError>,
}

/// One page of the due list of one shard.
#[derive(Debug)]
pub struct DuePage {
    pub rows: Vec<DueRow>,
    /// The position after which the next page of the shard starts; `None` at the end of the shard. A page may be empty
    /// even if it is not the last page.
    pub next: Option<DueIndexPosition>,
}

/// The rows of one shard that a query of an index returns.
#[derive(Clone, Copy, Debug)]
enum DueRange {
    /// The rows whose date is this date or earlier.
    Until(NaiveDate),
    /// The rows whose date is after `after`, although their due date is `due_by` or earlier.
    Postponed { after: NaiveDate, due_by: NaiveDate },
}

impl DueRange {
    /// Returns whether the row at `position` is in this range, so that the range continues after it.
    fn contains(&self, position: &DueIndexPosition) -> bool {
        match self {
            Self::Until(on) => position.on <= on.to_string(),
            Self::Postponed { after, .. } => position.on > after.to_string(),
        }
    }
}

/// Returns the date after which the next payment date of a payment due on or before `on` is impossible.
fn postponed_after(on: NaiveDate, today: NaiveDate) -> NaiveDate {
    on.max(last_payment_day_in_sight(today))
}

/// One list page of the due lists of all shards, one shard after the other.
#[derive(Debug)]
pub struct DueList {
    pub rows: Vec<DueRow>,
    /// The position after which the next list page starts; `None` at the end of the list.
    pub next: Option<DueIndexPosition>,
}

/// A row of a due list, with the stored subscription of the row.
#[derive(Debug)]
pub struct DueSubscription {
    pub due: DueEntry,
    pub subscription: Subscription,
}

/// The payment that a row of a due list is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DuePayment {
    pub due_on: NaiveDate,
    pub amount: Money,
}

impl DueSubscription {
    /// Returns the payment that will be charged (for [`Batch::Payments`]) or announced (for [`Batch::Reminders`]) because
    /// of this row; `None` if there is none, for example because the payment method is disputed.
    pub fn due_payment(&self, batch: Batch, policy: &Policy, today: NaiveDate) -> Option<DuePayment> {
        match batch {
            Batch::Payments => {
                let PlannedPayment { due_on, amount, .. } = self.subscription.planned_payments(policy, today).next()?;
                Some(DuePayment { due_on, amount })
            }
            Batch::Reminders => {
                let Reminder { due_on, amount } = self.subscription.next_reminder(today)?;
                Some(DuePayment { due_on, amount })
            }
        }
    }
}

impl Table {
    /// Returns the stored subscription of each of `rows`. An index does not contain everything that decides whether a
    /// payment is charged, such as disputes. Rows of subscriptions that no longer exist are omitted. The result contains
    /// an error for each row and for each subscription that cannot be read. Sends one strongly consistent BatchGetItem
    /// request for each 100 rows.
    pub async fn get_subscriptions_of_due_rows(
        &self,
        rows: Vec<DueRow>,
    ) -> Result<Vec<Result<DueSubscription, TableError>>, TableError> {
        let keys: Vec<_> = rows.iter().flat_map(|row| &row.due).map(|due| due.key.key()).collect();
        let mut items = self.dynamo.get_all(&keys).await?.into_iter();
        let with_subscription = |row: DueRow| match row.due {
            Err(error) => Some(Err(error)),
            Ok(due) => {
                let subscription = read_subscription(items.next().flatten()?);
                Some(subscription.map(|subscription| DueSubscription { due, subscription }))
            }
        };
        Ok(rows.into_iter().filter_map(with_subscription).collect())
    }

    /// Returns at most `limit` rows that are due for `batch` on or before the date `on`, in the shards 0 to `shards` -
    /// 1, one shard after the other. Starts after the position `after`; with `None`, at the first row. This function is
    /// for counts; a batch run reads only one shard at a time.
    pub async fn get_due_by_date(
        &self,
        batch: Batch,
        shards: u32,
        on: NaiveDate,
        after: Option<DueIndexPosition>,
        limit: usize,
    ) -> Result<DueList, TableError> {
        self.read_due_list(batch, shards, &[DueRange::Until(on)], after, limit).await
    }

    /// Returns due rows like [`Table::get_due_by_date`], and with them the postponed payments, for lists and forecasts.
    /// A postponed payment is due on or before `on`, but its next payment date is after `on` and after the month that
    /// follows `today`. No run finds such a row, because a run with a clock that was ahead wrote its next payment date.
    /// Also queries the rows of the payment index after that month, which are few: usually only new subscriptions have
    /// such a date.
    pub async fn get_due_and_postponed_by_date(
        &self,
        batch: Batch,
        shards: u32,
        on: NaiveDate,
        today: NaiveDate,
        after: Option<DueIndexPosition>,
        limit: usize,
    ) -> Result<DueList, TableError> {
        let ranges = [DueRange::Until(on), DueRange::Postponed { after: postponed_after(on, today), due_by: on }];
        let ranges = if batch == Batch::Payments { ranges.as_slice() } else { &ranges[..1] };
        self.read_due_list(batch, shards, ranges, after, limit).await
    }

    /// Returns the postponed payments (see [`Table::get_due_and_postponed_by_date`]) that are due by `today`, in the
    /// shards 0 to `shards` - 1.
    pub async fn get_postponed_payments(&self, shards: u32, today: NaiveDate) -> Result<Vec<DueRow>, TableError> {
        let range = DueRange::Postponed { after: postponed_after(today, today), due_by: today };
        Ok(self.read_due_list(Batch::Payments, shards, &[range], None, usize::MAX).await?.rows)
    }

    /// Returns at most `limit` rows that `ranges` select from the index of `batch`, one shard after the other, and in
    /// each shard one range after the other. Starts after the position `after`; with `None`, at the first row.
    async fn read_due_list(
        &self,
        batch: Batch,
        shards: u32,
        ranges: &[DueRange],
        mut after: Option<DueIndexPosition>,
        limit: usize,
    ) -> Result<DueList, TableError> {
        let mut rows: Vec<DueRow> = Vec::new();
        let first = after.as_ref().map_or(0, |position| position.shard);
        for shard in first..shards {
            for range in ranges {
                // The position at which the list continues may be in a later range.
                while after.as_ref().is_none_or(|position| range.contains(position)) {
                    // Request one row more than `limit`: if this row exists, the list has a next page.
                    let limit_and_one = limit.saturating_sub(rows.len()).saturating_add(1);
                    let limit_and_one = i32::try_from(limit_and_one).unwrap_or(i32::MAX);
                    let page =
                        self.read_due_page(batch.due_index(), shard, *range, after.as_ref(), limit_and_one).await?;
                    let is_last = page.next.is_none();
                    after = page.next;
                    rows.extend(page.rows);
                    if rows.len() > limit {
                        rows.truncate(limit);
                        let next = rows.last().map(|row| row.position.clone());
                        return Ok(DueList { rows, next });
                    }
                    if is_last {
                        break;
                    }
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
        after: Option<&DueIndexPosition>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        self.read_due_page(Batch::Reminders.due_index(), shard, DueRange::Until(on), after, limit).await
    }

    /// getDuePaymentsByDate: like [`Table::get_due_reminders_by_date`], for payments. Sends a Query to GSI-2 with
    /// `Shard = <shard> AND NextPaymentDate <= <date>`. Rows of earlier dates are also returned, because an outage may
    /// have prevented the runs of those dates.
    pub async fn get_due_payments_by_date(
        &self,
        shard: u32,
        on: NaiveDate,
        after: Option<&DueIndexPosition>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        self.read_due_page(Batch::Payments.due_index(), shard, DueRange::Until(on), after, limit).await
    }

    /// Reads one page of the rows of `shard` in `index` that `range` selects.
    async fn read_due_page(
        &self,
        index: &IndexSchema,
        shard: u32,
        range: DueRange,
        after: Option<&DueIndexPosition>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        let (partition, date_attribute) = (index.keys.partition.0, index.keys.sort.0);
        let is_in_shard = format!("#{partition} = :shard AND #{date_attribute}");
        let query = match range {
            DueRange::Until(on) => Query {
                page_items: usize::try_from(limit).ok(),
                ..Query::new(format!("{is_in_shard} <= :today"), values([(":shard", n(shard)), (":today", s(on))]))
            },
            // Few rows pass the filter, so the page is as large as possible.
            DueRange::Postponed { after, due_by } => Query {
                filter: Some("#DueDate <= :due"),
                ..Query::new(
                    format!("{is_in_shard} > :after"),
                    values([(":shard", n(shard)), (":after", s(after)), (":due", s(due_by))]),
                )
            },
        };
        let after = after.map(|position| position.start_key(date_attribute));
        let mut items = self.dynamo.query(Query { index: Some(index.name), after, ..query });
        let page = items.read_page().await?.unwrap_or_default();
        let position = |item: &Item| DueIndexPosition::from_index_item(shard, date_attribute, item);
        let row = |item| DueRow { position: position(item), due: DueItem::read(item) };
        Ok(DuePage { rows: page.iter().map(row).collect(), next: items.last_evaluated_key().map(position) })
    }
}
