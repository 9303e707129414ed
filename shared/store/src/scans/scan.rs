//! Scans of the whole table, for audits, exports and copies.

use std::ops::ControlFlow;

use chrono::{DateTime, NaiveDate, Utc};
use futures::stream::{self, Stream, StreamExt as _};

use crate::entities::subscriptions::read_subscription;
use crate::keys;
use crate::keys::SubscriptionKey;
use crate::table::payments_table::Table;
use billing::{Account, Receipt, Refund, Subscription};
use dynamo::{Entity as _, Scan, key_of_item, n, s, values};
use dynamo::{Item, TableError};

/// An item of the report of sales, which [`Table::scan_sales_and_due`] passes to its caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScannedItem {
    Receipt(Box<Receipt>),
    Refund(Box<Refund>),
    /// A subscription whose next payment date is today or earlier: a payment is due, or a payment attempt is open.
    Due(Box<Subscription>),
}

/// Returns the scan of all receipts that have not expired at `now`.
fn unexpired_receipts(now: DateTime<Utc>) -> Scan {
    let values = values([(":receipts", s(keys::RECEIPTS)), (":now", n(now.timestamp()))]);
    Scan::filtered("begins_with(#SK, :receipts) AND #TTL > :now", values)
}

impl Table {
    /// Returns all items of the table. Sends strongly consistent Scan requests until the last page.
    pub async fn scan(&self) -> Result<Vec<Item>, TableError> {
        self.dynamo.scan(Scan::all()).read_all().await
    }

    /// Returns whether the table contains no item. Sends one Scan request.
    pub async fn is_empty(&self) -> Result<bool, TableError> {
        Ok(self.dynamo.scan(Scan::all()).next().await?.is_none())
    }

    /// Copies all items of the table `other` that this table does not have. First copies the marks of sent notices, so
    /// that no notice about a copied item is sent again. Copies subscriptions last, so that this table already has the
    /// payment records of every copied subscription. After an error, the caller can repeat the call to copy the
    /// remaining items. Sends one PutItem request for each item, on condition that the item is absent.
    pub async fn copy_missing_items(&self, other: &Table) -> Result<(), TableError> {
        let items = other.scan().await?;
        let (subscriptions, mut other_items): (Vec<Item>, Vec<Item>) =
            items.into_iter().partition(|item| SubscriptionKey::parse(&key_of_item(item)).is_some());
        other_items.sort_by_key(|item| !key_of_item(item).pk.starts_with(keys::NOTICES));
        for item in other_items.into_iter().chain(subscriptions) {
            self.put_if_absent(item).await?;
        }
        Ok(())
    }

    /// Calls `each` for every account that was not erased, until `each` returns `Break`. If an account cannot be read,
    /// calls `each` with the error. At most one page of items is in memory. Sends Scan requests until the last page, or
    /// until `each` returns `Break`.
    pub async fn scan_accounts(
        &self,
        each: impl FnMut(Result<Account, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        const FILTER: &str = "begins_with(#SK, :accounts) AND attribute_not_exists(#ErasedDate)";
        let scan = Scan::filtered(FILTER, values([(":accounts", s(keys::ACCOUNTS))]));
        self.convert_each_item(scan, |item| Account::from_item(&item), each).await
    }

    /// Calls `each` for every subscription, like [`Table::scan_accounts`].
    pub async fn scan_subscriptions(
        &self,
        each: impl FnMut(Result<Subscription, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        self.convert_each_item(Scan::beginning_with(keys::SUBSCRIPTIONS), read_subscription, each).await
    }

    /// Calls `each` for every receipt that has not expired at `now`, like [`Table::scan_accounts`].
    pub async fn scan_receipts(
        &self,
        now: DateTime<Utc>,
        each: impl FnMut(Result<Receipt, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        self.convert_each_item(unexpired_receipts(now), |item| Receipt::from_item(&item), each).await
    }

    /// Calls `each` for every receipt, every refund, and every subscription whose next payment date is `today` or earlier,
    /// like [`Table::scan_accounts`].
    pub async fn scan_sales_and_due(
        &self,
        today: NaiveDate,
        each: impl FnMut(Result<ScannedItem, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        const FILTER: &str = "begins_with(#SK, :receipts) OR begins_with(#SK, :refunds) \
            OR (begins_with(#SK, :subscriptions) AND #NextPaymentDate <= :today)";
        let values = values([
            (":receipts", s(keys::RECEIPTS)),
            (":refunds", s(keys::REFUNDS)),
            (":subscriptions", s(keys::SUBSCRIPTIONS)),
            (":today", s(today)),
        ]);
        let read = |item: Item| match key_of_item(&item).sk {
            sk if sk.starts_with(keys::SUBSCRIPTIONS) => read_subscription(item).map(Box::new).map(ScannedItem::Due),
            sk if sk.starts_with(keys::REFUNDS) => Refund::from_item(&item).map(Box::new).map(ScannedItem::Refund),
            _ => Receipt::from_item(&item).map(Box::new).map(ScannedItem::Receipt),
        };
        self.convert_each_item(Scan::filtered(FILTER, values), read, each).await
    }

    /// Returns all subscriptions as a stream. If a request fails, the stream returns the error and ends. Sends Scan
    /// requests until the last page.
    pub fn all_subscriptions(&self) -> impl Stream<Item = Result<Subscription, TableError>> + use<> {
        self.stream_items(Scan::beginning_with(keys::SUBSCRIPTIONS), read_subscription)
    }

    /// Returns all receipts that have not expired at `now`, like [`Table::all_subscriptions`].
    pub fn all_receipts(&self, now: DateTime<Utc>) -> impl Stream<Item = Result<Receipt, TableError>> + use<> {
        self.stream_items(unexpired_receipts(now), |item| Receipt::from_item(&item))
    }

    /// Returns the items of `scan` as a stream, each converted with `read`.
    fn stream_items<T: 'static>(
        &self,
        scan: Scan,
        read: fn(Item) -> Result<T, TableError>,
    ) -> impl Stream<Item = Result<T, TableError>> + use<T> {
        let items = self.dynamo.scan(scan);
        let items = stream::try_unfold(items, async |mut items| Ok(items.next().await?.map(|item| (item, items))));
        items.map(move |item| item.and_then(read))
    }

    /// Converts every item of `scan` with `read`, and calls `each` with the result, until `each` returns `Break`.
    async fn convert_each_item<T>(
        &self,
        scan: Scan,
        read: impl Fn(Item) -> Result<T, TableError>,
        mut each: impl FnMut(Result<T, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let mut items = self.dynamo.scan(scan);
        while let Some(item) = items.next().await? {
            if each(read(item)).is_break() {
                break;
            }
        }
        Ok(())
    }
}
