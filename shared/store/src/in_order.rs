//! Everything of a kind in order of its accounts, for a copy of it. What is in memory is the accounts' keys, and the items
//! of as many accounts as are read at a time.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use futures::{StreamExt as _, stream};

use super::subscriptions::read;
use super::{Item, Table, TableError, keys};
use billing::{Account, Receipt, Subscription};
use dynamo::{Entity as _, List, Paging, Scan, is_expired};

/// So many accounts are read at a time.
const ACCOUNTS_AT_A_TIME: usize = 16;

impl Table {
    /// Hands every account to `each`, in order, until it breaks off. Scan of the keys, and a Query for each account.
    ///
    /// # Errors
    /// [`TableError`]; what cannot be read is handed over as an error instead.
    pub async fn accounts_in_order(
        &self,
        each: impl FnMut(Result<Account, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        self.in_order(keys::ACCOUNTS, |item| Account::from_item(&item), each).await
    }

    /// Hands every subscription to `each`, by account, as [`Table::accounts_in_order`].
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn subscriptions_in_order(
        &self,
        each: impl FnMut(Result<Subscription, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        self.in_order(keys::SUBSCRIPTIONS, read, each).await
    }

    /// Hands every receipt that has not expired by `now` to `each`, by account and due date, as
    /// [`Table::accounts_in_order`].
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn receipts_in_order(
        &self,
        now: DateTime<Utc>,
        mut each: impl FnMut(Result<Receipt, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let read = |item: Item| Ok((!is_expired(&item, now)).then_some(Receipt::from_item(&item)?));
        let unexpired = |receipt: Result<Option<Receipt>, TableError>| match receipt.transpose() {
            Some(receipt) => each(receipt),
            None => ControlFlow::Continue(()),
        };
        self.in_order(keys::RECEIPTS, read, unexpired).await
    }

    async fn in_order<T>(
        &self,
        prefix: &str,
        read: impl Fn(Item) -> Result<T, TableError>,
        mut each: impl FnMut(Result<T, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let partitions = self.partitions_with(prefix).await?;
        let items = stream::iter(partitions).map(|partition| self.items_of(partition, prefix));
        let mut items = items.buffered(ACCOUNTS_AT_A_TIME);
        while let Some(items) = items.next().await {
            for item in items? {
                if each(read(item)).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The partitions that have items of a kind, though the account itself be missing.
    async fn partitions_with(&self, prefix: &str) -> Result<BTreeSet<String>, TableError> {
        let mut keys = self.dynamo.scan(Scan::beginning_with(prefix).only("#PK").eventually_consistent());
        let mut partitions = BTreeSet::new();
        while let Some(key) = keys.next().await? {
            partitions.extend(key.get("PK").and_then(|pk| pk.as_s().ok().cloned()));
        }
        Ok(partitions)
    }

    async fn items_of(&self, partition: String, prefix: &str) -> Result<Vec<Item>, TableError> {
        Ok(self.list(&List::of(partition, prefix), &Paging::all()).await?.items)
    }
}
