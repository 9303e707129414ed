//! Reads all items of one kind in the order of their accounts, for exports. Only the keys of all accounts, and the
//! items of the accounts that are being read, are in memory.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use futures::{StreamExt as _, stream};

use super::subscriptions::read;
use super::{Item, Table, TableError, keys};
use billing::{Account, Receipt, Subscription};
use dynamo::{Entity as _, Paging, PrefixQuery, Scan, is_expired};

/// The number of accounts that are read at the same time.
const PARALLEL_ACCOUNTS: usize = 16;

impl Table {
    /// Calls `each` for every account, in the order of the accounts' ids, until `each` returns `Break`. An account that
    /// cannot be read is passed as an error. Sends Scan requests for the keys, and one Query request for each account.
    pub async fn accounts_in_order(
        &self,
        each: impl FnMut(Result<Account, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        self.each_in_order_of_accounts(keys::ACCOUNTS, |item| Account::from_item(&item), each).await
    }

    /// Calls `each` for every subscription, in the order of their accounts, like [`Table::accounts_in_order`].
    pub async fn subscriptions_in_order(
        &self,
        each: impl FnMut(Result<Subscription, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        self.each_in_order_of_accounts(keys::SUBSCRIPTIONS, read, each).await
    }

    /// Calls `each` for every receipt that has not expired at `now`, in the order of their accounts and due dates, like
    /// [`Table::accounts_in_order`].
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
        self.each_in_order_of_accounts(keys::RECEIPTS, read, unexpired).await
    }

    /// Reads the items whose sort keys begin with `prefix`, in the order of the accounts. Converts each item with
    /// `read`, and calls `each` with the result, until `each` returns `Break`.
    async fn each_in_order_of_accounts<T>(
        &self,
        prefix: &str,
        read: impl Fn(Item) -> Result<T, TableError>,
        mut each: impl FnMut(Result<T, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let partitions = self.partitions_with_prefix(prefix).await?;
        let items = stream::iter(partitions).map(|partition| self.items_of_partition(partition, prefix));
        let mut items = items.buffered(PARALLEL_ACCOUNTS);
        while let Some(items) = items.next().await {
            for item in items? {
                if each(read(item)).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the partition keys of the accounts that have items whose sort keys begin with `prefix`, even if the item
    /// of the account itself is missing.
    async fn partitions_with_prefix(&self, prefix: &str) -> Result<BTreeSet<String>, TableError> {
        let mut keys = self.dynamo.scan(Scan::beginning_with(prefix).project("#PK").eventually_consistent());
        let mut partitions = BTreeSet::new();
        while let Some(key) = keys.next().await? {
            partitions.extend(key.get("PK").and_then(|pk| pk.as_s().ok().cloned()));
        }
        Ok(partitions)
    }

    /// Returns the items of one partition whose sort keys begin with `prefix`.
    async fn items_of_partition(&self, partition: String, prefix: &str) -> Result<Vec<Item>, TableError> {
        Ok(self.list(&PrefixQuery::new(partition, prefix), &Paging::all()).await?.items)
    }
}
