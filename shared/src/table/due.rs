//! Due lists: getDueRemindersByDate, getDuePaymentsByDate.

use chrono::NaiveDate;

use super::expression::names;
use super::items::DueItem;
use super::{Due, Position, Projection, SCHEMA, Table, TableError, n, s};

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
    /// Whether the shard's end has been reached.
    pub is_last: bool,
}

impl Table {
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
        const KEYS: &str = "#Shard = :shard AND #NextReminderDate <= :today";
        self.due_page(&SCHEMA.indexes[0], KEYS, shard, on, after, limit).await
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
        const KEYS: &str = "#Shard = :shard AND #NextPaymentDate <= :today";
        self.due_page(&SCHEMA.indexes[1], KEYS, shard, on, after, limit).await
    }

    async fn due_page(
        &self,
        index: &Projection,
        keys: &str,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        let answer = self
            .client
            .query()
            .table_name(&self.name)
            .index_name(index.index)
            .key_condition_expression(keys)
            .set_expression_attribute_names(Some(names(&[keys])))
            .expression_attribute_values(":shard", n(shard))
            .expression_attribute_values(":today", s(on))
            .set_exclusive_start_key(after.map(|position| position.start_key(index.sort_key)))
            .limit(limit)
            .send()
            .await
            .map_err(|error| TableError::request("Query", error))?;
        let is_last = answer.last_evaluated_key().is_none();
        let row = |item| Row { position: Position::of(shard, index.sort_key, item), due: DueItem::read(item) };
        Ok(DuePage { rows: answer.items().iter().map(row).collect(), is_last })
    }
}
