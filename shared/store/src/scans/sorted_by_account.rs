//! Reads all items of one kind in the order of their accounts, for exports. Only the keys of all accounts, and the
//! items of the accounts that are being read, are in memory.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use futures::{StreamExt as _, stream};

use crate::entities::subscriptions::read_subscription;
use crate::items::is_erased_account;
use crate::keys;
use crate::table::payments_table::Table;
use billing::{Account, Label, Receipt, Refund, Subscription};
use dynamo::{Entity as _, Paging, PrefixQuery, Scan, is_expired};
use dynamo::{Item, Key, TableError};

/// The number of accounts that are read at the same time.
const PARALLEL_ACCOUNTS: usize = 16;

impl Table {
    /// Calls `each` for every account that was not erased, in the order of the accounts' ids, until `each` returns
    /// `Break`. If an account cannot be read, calls `each` with the error. Sends Scan requests for the keys, and one
    /// Query request for each account.
    pub async fn accounts_in_order(
        &self,
        each: impl FnMut(Result<Account, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let read_partition = async |partition: String| {
            let items = self.items_of_partition(partition, keys::ACCOUNTS).await?;
            Ok(items.iter().filter(|item| !is_erased_account(item)).map(Account::from_item).collect())
        };
        self.each_in_order_of_accounts(keys::ACCOUNTS, read_partition, each).await
    }

    /// Calls `each` for every subscription, with its account, in the order of their accounts, like
    /// [`Table::accounts_in_order`]. Sends one more GetItem request for each account. The account is `None` if it does not
    /// exist or cannot be read.
    pub async fn subscriptions_in_order(
        &self,
        each: impl FnMut(Result<(Subscription, Option<Account>), TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let read_partition = async |partition: String| {
            let (account, subscriptions) = futures::try_join!(
                self.get(Key { pk: partition.clone(), sk: partition.clone() }),
                self.items_of_partition(partition, keys::SUBSCRIPTIONS)
            )?;
            let account =
                account.filter(|item| !is_erased_account(item)).and_then(|item| Account::from_item(&item).ok());
            Ok(subscriptions.into_iter().map(|item| Ok((read_subscription(item)?, account.clone()))).collect())
        };
        self.each_in_order_of_accounts(keys::SUBSCRIPTIONS, read_partition, each).await
    }

    /// Calls `each` for every receipt that has not expired at `now`, with the name of its account, in the order of the
    /// accounts and due dates, like [`Table::accounts_in_order`]. Sends one more GetItem request for each account. The
    /// name is `None` if the account does not exist or cannot be read.
    pub async fn receipts_in_order(
        &self,
        now: DateTime<Utc>,
        each: impl FnMut(Result<(Receipt, Option<Label>), TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let read_partition = async |partition: String| {
            let (account, receipts) = futures::try_join!(
                self.get(Key { pk: partition.clone(), sk: partition.clone() }),
                self.items_of_partition(partition, keys::RECEIPTS)
            )?;
            let name = account.and_then(|account| Account::from_item(&account).ok()).map(|account| account.name);
            let receipts = receipts.iter().filter(|item| !is_expired(item, now));
            Ok(receipts.map(|item| Ok((Receipt::from_item(item)?, name.clone()))).collect())
        };
        self.each_in_order_of_accounts(keys::RECEIPTS, read_partition, each).await
    }

    /// Calls `each` for every refund that has not expired at `now`, in the order of the accounts and of the due dates of the
    /// refunded payments, like [`Table::accounts_in_order`].
    pub async fn refunds_in_order(
        &self,
        now: DateTime<Utc>,
        each: impl FnMut(Result<Refund, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let read_partition = async |partition: String| {
            let items = self.items_of_partition(partition, keys::REFUNDS).await?;
            Ok(items.iter().filter(|item| !is_expired(item, now)).map(Refund::from_item).collect())
        };
        self.each_in_order_of_accounts(keys::REFUNDS, read_partition, each).await
    }

    /// Calls `read_partition` for each account that has an item whose sort key begins with `prefix`, in the order of
    /// the accounts. Calls `each` with each item that `read_partition` returns, until `each` returns `Break`.
    async fn each_in_order_of_accounts<T>(
        &self,
        prefix: &str,
        read_partition: impl AsyncFn(String) -> Result<Vec<Result<T, TableError>>, TableError>,
        mut each: impl FnMut(Result<T, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let partitions = self.partitions_with_prefix(prefix).await?;
        let mut read = stream::iter(partitions).map(|partition| read_partition(partition)).buffered(PARALLEL_ACCOUNTS);
        while let Some(items) = read.next().await {
            for item in items? {
                if each(item).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the partition keys of the accounts that have items whose sort keys begin with `prefix`, even if the item
    /// of the account itself is missing.
    async fn partitions_with_prefix(&self, prefix: &str) -> Result<BTreeSet<String>, TableError> {
        let mut found = self.dynamo.scan(Scan::beginning_with(prefix).project("#PK").eventually_consistent());
        let mut partitions = BTreeSet::new();
        while let Some(key) = found.next().await? {
            partitions.extend(key.get("PK").and_then(|pk| pk.as_s().ok().cloned()));
        }
        Ok(partitions)
    }

    /// Returns the items of one partition whose sort keys begin with `prefix`.
    async fn items_of_partition(&self, partition: String, prefix: &str) -> Result<Vec<Item>, TableError> {
        Ok(self.list_items(&PrefixQuery::new(partition, prefix), &Paging::all()).await?.items)
    }
}
