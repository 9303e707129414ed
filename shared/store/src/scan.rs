//! The whole table, for those who check, list or copy it.

use std::ops::ControlFlow;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::scan::ScanError;
use aws_smithy_async::future::pagination_stream::PaginationStream;
use chrono::NaiveDate;
use futures::stream::{self, Stream};

use super::items::{AccountItem, ReceiptItem};
use super::subscriptions::read;
use super::{Item, SubscriptionKey, Table, TableError, keys};
use billing::{Account, Receipt, Subscription};
use dynamo::s;
use dynamo::{from_item, key_of};

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
        let pages = self.client().scan().table_name(self.name()).consistent_read(true).into_paginator().items().send();
        pages.collect::<Result<Vec<Item>, _>>().await.map_err(|error| TableError::request("Scan", error))
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
        self.scan_prefix(keys::ACCOUNTS, |item| from_item::<AccountItem>(&item)?.try_into(), each).await
    }

    /// Hands every subscription to `each`, as [`Table::scan_accounts`].
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn scan_subscriptions(
        &self,
        each: impl FnMut(Result<Subscription, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        self.scan_prefix(keys::SUBSCRIPTIONS, read, each).await
    }

    /// Hands every receipt to `each`, and every subscription whose next payment date is `today` or before, as
    /// [`Table::scan_accounts`].
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn scan_receipts_and_due(
        &self,
        today: NaiveDate,
        mut each: impl FnMut(Result<Scanned, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        const WANTED: &str =
            "begins_with(#SK, :receipts) OR (begins_with(#SK, :subscriptions) AND #NextPaymentDate <= :today)";
        let scan = self
            .client()
            .scan()
            .table_name(self.name())
            .consistent_read(true)
            .filter_expression(WANTED)
            .set_expression_attribute_names(Some(dynamo::names(&[WANTED])))
            .expression_attribute_values(":receipts", s(keys::RECEIPTS))
            .expression_attribute_values(":subscriptions", s(keys::SUBSCRIPTIONS))
            .expression_attribute_values(":today", s(today));
        let mut items = scan.into_paginator().items().send();
        while let Some(item) = items.next().await {
            let item = item.map_err(|error| TableError::request("Scan", error))?;
            let scanned = match key_of(&item).sk.starts_with(keys::SUBSCRIPTIONS) {
                true => read(item).map(Box::new).map(Scanned::Due),
                false => {
                    from_item::<ReceiptItem>(&item).and_then(Receipt::try_from).map(Box::new).map(Scanned::Receipt)
                }
            };
            if each(scanned).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// All subscriptions, for those who go on while they wait. Scan, all pages.
    pub fn all_subscriptions(&self) -> impl Stream<Item = Result<Subscription, TableError>> + use<> {
        stream::unfold(self.scanned(keys::SUBSCRIPTIONS), async |mut items| {
            let item = items.next().await?;
            Some((item.map_err(|error| TableError::request("Scan", error)).and_then(read), items))
        })
    }

    async fn scan_prefix<T>(
        &self,
        prefix: &str,
        read: impl Fn(Item) -> Result<T, TableError>,
        mut each: impl FnMut(Result<T, TableError>) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let mut items = self.scanned(prefix);
        while let Some(item) = items.next().await {
            if each(read(item.map_err(|error| TableError::request("Scan", error))?)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn scanned(&self, prefix: &str) -> PaginationStream<Result<Item, SdkError<ScanError>>> {
        const OF_KIND: &str = "begins_with(#SK, :prefix)";
        let scan = self
            .client()
            .scan()
            .table_name(self.name())
            .consistent_read(true)
            .filter_expression(OF_KIND)
            .set_expression_attribute_names(Some(dynamo::names(&[OF_KIND])))
            .expression_attribute_values(":prefix", s(prefix));
        scan.into_paginator().items().send()
    }
}
