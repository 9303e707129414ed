//! The action log: who made which change when. An entry is written in the same transaction as the change. The entries
//! of an account are in its partition, those of the order desk about the account in another one. The entries that concern
//! no account are in one partition for each month.

use std::cmp::Reverse;

use aws_sdk_dynamodb::types::{ReturnValue, TransactWriteItem, Update};
use chrono::{DateTime, Utc};
use ulid::Ulid;

use crate::keys;
use crate::table::payments_table::Table;
use billing::{AccountId, LoggedAction, NewAction, Period};
use dynamo::{Cursor, IdempotentRequest, Item, Page, Paging, TableError};
use dynamo::{
    Entity as _, PrefixQuery, TIME_TO_LIVE, TransactionOutcome, UpdateItemOutcome, expiry_timestamp, key_of_item, n,
};

/// The records that are written in the same transaction as a change.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangeRecords<'a> {
    /// The idempotency record of the request; `None` if the request has no key.
    pub request: Option<&'a IdempotentRequest>,
    /// The action whose entry is written to the action log; `None` if no entry is written, because the change was not
    /// made with the API or with a command.
    pub action: Option<&'a NewAction>,
}

/// Creates the records of a change for which no entry is written to the action log.
impl<'a> From<Option<&'a IdempotentRequest>> for ChangeRecords<'a> {
    fn from(request: Option<&'a IdempotentRequest>) -> Self {
        Self { request, action: None }
    }
}

/// The writes of a transaction that updates an item and stores the entry of the update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LoggedUpdateWrite {
    Update,
    ActionEntry,
}

impl Table {
    /// Builds the write of a transaction that stores `entry`. The write has no condition, because no other change has
    /// the id of the entry.
    pub fn build_action_put(&self, entry: &LoggedAction) -> TransactWriteItem {
        self.build_put(self.build_action_item(entry))
    }

    /// Returns the item of `entry` with the time at which it expires.
    fn build_action_item(&self, entry: &LoggedAction) -> Item {
        let mut item = entry.to_item();
        item.insert(TIME_TO_LIVE.to_owned(), n(expiry_timestamp(entry.at, self.policy().action_retention())));
        item
    }

    /// Stores the entry `entry` of a job that makes its changes in many transactions. Replaces an earlier entry of the
    /// same job. Sends one PutItem request.
    pub async fn put_action(&self, entry: &LoggedAction) -> Result<(), TableError> {
        self.put(self.build_action_item(entry)).await
    }

    /// Executes `update`, and stores `entry` in the same transaction if it is given. Sends one UpdateItem request or,
    /// with an `entry`, one TransactWriteItems request.
    pub(crate) async fn send_logged_update(
        &self,
        update: Update,
        entry: Option<LoggedAction>,
    ) -> Result<UpdateItemOutcome, TableError> {
        let Some(entry) = entry else { return self.send_update(update, ReturnValue::None).await };
        let update = TransactWriteItem::builder().update(update).build();
        let writes =
            [(LoggedUpdateWrite::Update, update), (LoggedUpdateWrite::ActionEntry, self.build_action_put(&entry))];
        Ok(match self.transact_named(writes).await? {
            TransactionOutcome::Written => UpdateItemOutcome::Updated(Item::new()),
            TransactionOutcome::ConditionFailed(failed) => {
                let stored = failed.item(LoggedUpdateWrite::Update).filter(|item| !item.is_empty());
                UpdateItemOutcome::ConditionFailed(stored.cloned())
            }
        })
    }

    /// Returns the actions that concern `account` and have not expired at `now`, the newest first. Sends a Query with
    /// `PK = ACC#<account> AND begins_with(SK, "ACTION#")`, and one with `PK = ACTIONS#ACC#<account>` for the actions that
    /// were made with the order desk.
    pub async fn get_actions_by_account(
        &self,
        account: &AccountId,
        paging: &Paging,
        now: DateTime<Utc>,
    ) -> Result<Page<LoggedAction>, TableError> {
        let partitions = [keys::partition_key_of_account(account), keys::partition_key_of_order_actions(account)];
        // Request one item more than fits into the list page: if this item exists, there is a next list page.
        let paging_of_partition = Paging { limit: paging.limit.map(|limit| limit.saturating_add(1)), ..paging.clone() };
        let mut items = Vec::new();
        for partition in partitions {
            let list = PrefixQuery::new(partition, keys::ACTIONS);
            items.append(&mut self.list_items(&list.descending().unexpired_at(now), &paging_of_partition).await?.items);
        }
        // The sort key contains the id, which begins with the time of the action.
        items.sort_by_cached_key(|item| Reverse(key_of_item(item).sk));
        let next = paging.limit.filter(|limit| items.len() > *limit).and_then(|limit| {
            items.truncate(limit);
            items.last().map(|item| Cursor::after(key_of_item(item).sk))
        });
        Ok(Page { items, unreadable: Vec::new(), next }.read(|item| LoggedAction::from_item(&item)))
    }

    /// Returns the actions that concern `account`, were made with the order desk, and have not expired at `now`. Sends a
    /// Query with `PK = ACTIONS#ACC#<account>`. Earlier versions stored these actions in the partition of the account.
    pub async fn get_order_actions_by_account(
        &self,
        account: &AccountId,
        now: DateTime<Utc>,
    ) -> Result<Page<LoggedAction>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_order_actions(account), keys::ACTIONS).unexpired_at(now);
        Ok(self.list_items(&list, &Paging::all()).await?.read(|item| LoggedAction::from_item(&item)))
    }

    /// Returns the actions that concern no account and have not expired at `now`, the newest first. Sends a Query with
    /// `PK = ACTIONS#<month>` for each month, from the month of the cursor or of `now` back to the month that the
    /// policy's days for the action log begin in, until the list page is full.
    pub async fn get_actions_without_account(
        &self,
        paging: &Paging,
        now: DateTime<Utc>,
    ) -> Result<Page<LoggedAction>, TableError> {
        let month_of = |at: DateTime<Utc>| Period::from_day(at.date_naive());
        let oldest = month_of(now - self.policy().action_retention());
        let mut month = paging.after.as_ref().and_then(time_of_cursor).map_or(month_of(now), month_of);
        let mut items = Vec::new();
        let mut after = paging.after.clone();
        let mut next = None;
        while month >= oldest {
            let list = PrefixQuery::new(keys::partition_key_of_actions(month), keys::ACTIONS);
            // Request one item more than fits into the list page: if this item exists, there is a next list page.
            let limit = paging.limit.map(|limit| limit.saturating_add(1).saturating_sub(items.len()));
            let paging_of_month = Paging { after: after.take(), limit };
            items.append(&mut self.list_items(&list.descending().unexpired_at(now), &paging_of_month).await?.items);
            if let Some(limit) = paging.limit.filter(|limit| items.len() > *limit) {
                items.truncate(limit);
                next = items.last().map(|item| Cursor::after(key_of_item(item).sk));
                break;
            }
            month = month.previous();
        }
        Ok(Page { items, unreadable: Vec::new(), next }.read(|item| LoggedAction::from_item(&item)))
    }

    /// Reads from `text` the cursor of a list of actions; `None` if `text` cannot be such a cursor.
    pub fn parse_action_log_cursor(text: String) -> Option<Cursor> {
        Cursor::with_prefix(keys::ACTIONS, text)
    }
}

/// Returns the time in the id of the action to which `cursor` points; `None` if the cursor contains no id.
fn time_of_cursor(cursor: &Cursor) -> Option<DateTime<Utc>> {
    let id: Ulid = cursor.as_str().strip_prefix(keys::ACTIONS)?.parse().ok()?;
    DateTime::from_timestamp_millis(i64::try_from(id.timestamp_ms()).ok()?)
}
