//! The whole table, for those who check, list or copy it.

use std::ops::ControlFlow;

use chrono::NaiveDate;
use futures::stream::{self, Stream, StreamExt as _};

use super::subscriptions::read;
use super::{Item, SubscriptionKey, Table, TableError, keys};
use billing::{Account, Receipt, Subscription};
use dynamo::{Entity as _, Scan, key_of, s, values};

/// An item of a scan for receipts and for what is due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scanned {
    Receipt(Box<Receipt>),
    /// A subscription that is due, or has an open attempt.
    Due(Box<Subscription>),
}

impl Table {
    /// Every item. Scan, all pages, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn scan(&self) -> Result<Vec<Item>, TableError> {
        self.dynamo.scan(Scan::all()).all().await
    }

    /// Copies every item of `other` that is not here, subscriptions last: whoever finds one finds its records too. Put if
    /// absent, one by one.
    ///
    /// # Errors
    /// [`TableError`]: copying again goes on.
    pub async fn copy_from(&self, other: &Table) -> Result<(), TableError> {
        let items = other.scan().await?;
        let (subscriptions, others): (Vec<Item>, Vec<Item>) =
            items.into_iter().partition(|item| SubscriptionKey::parse(&key_of(item)).is_some());
        for item in others.into_iter().chain(subscriptions) {
            self.put_if_absent(item).await?;
        }
        Ok(())
    }

    /// Hands every account to `each`, a page at a time in memory, until it breaks off. Scan, all pages.
    ///
    /// # Errors
    /// [`TableError`]; what cannot be read is handed over as an error instead.
    pub async fn scan_accounts(
        &self,
        each: impl FnMut(Result<Account, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        self.scan_each(Scan::beginning_with(keys::ACCOUNTS), |item| Account::from_item(&item), each).await
    }

    /// Hands every subscription to `each`, as [`Table::scan_accounts`].
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn scan_subscriptions(
        &self,
        each: impl FnMut(Result<Subscription, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        self.scan_each(Scan::beginning_with(keys::SUBSCRIPTIONS), read, each).await
    }

    /// Hands every receipt to `each`, and every subscription whose next payment date is `today` or before, as
    /// [`Table::scan_accounts`].
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn scan_receipts_and_due(
        &self,
        today: NaiveDate,
        each: impl FnMut(Result<Scanned, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        const WANTED: &str =
            "begins_with(#SK, :receipts) OR (begins_with(#SK, :subscriptions) AND #NextPaymentDate <= :today)";
        let values = values([
            (":receipts", s(keys::RECEIPTS)),
            (":subscriptions", s(keys::SUBSCRIPTIONS)),
            (":today", s(today)),
        ]);
        let read = |item: Item| match key_of(&item).sk.starts_with(keys::SUBSCRIPTIONS) {
            true => read(item).map(Box::new).map(Scanned::Due),
            false => Receipt::from_item(&item).map(Box::new).map(Scanned::Receipt),
        };
        self.scan_each(Scan::filtered(WANTED, values), read, each).await
    }

    /// All subscriptions, for those who go on while they wait. Scan, all pages. It ends after a request that failed.
    pub fn all_subscriptions(&self) -> impl Stream<Item = Result<Subscription, TableError>> + use<> {
        let items = self.dynamo.scan(Scan::beginning_with(keys::SUBSCRIPTIONS));
        let items = stream::try_unfold(items, async |mut items| Ok(items.next().await?.map(|item| (item, items))));
        items.map(|item| item.and_then(read))
    }

    async fn scan_each<T>(
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
