//! Receipts: createReceipt, getReceiptsByAccount.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{ReturnValue, TransactWriteItem};
use chrono::{DateTime, Utc};

use super::{Item, Page, Paging, Payments, Table, TableError, keys};
use billing::{AccountId, AttemptRecord, Period, Receipt, ReceiptId, Reversal, SubscriptionId, WaivedPeriod};
use dynamo::{ABSENT, Entity, Instant, List, TIME_TO_LIVE, expiry, is_expired, n, s};

impl Table {
    /// createReceipt: a put if absent, to be written in one TransactWriteItems with the subscription it belongs to.
    pub(super) fn create_receipt(&self, receipt: &Receipt) -> TransactWriteItem {
        self.put_of_on(self.record_item(receipt, receipt.processed_at), ABSENT, None)
    }

    /// Writes the mark of a reversed payment on the stored `receipt`, or removes it. UpdateItem; a receipt that has expired stays
    /// gone.
    ///
    /// # Errors
    /// [`TableError`] if the request fails.
    pub async fn mark_reversal(&self, receipt: &Receipt, reversal: Option<Reversal>) -> Result<(), TableError> {
        const OF_PAYMENT: &str = "#GatewayPaymentId = :payment";
        let of = (":payment".to_owned(), s(&receipt.payment));
        let (update, values) = match reversal {
            Some(Reversal { at, amount }) => (
                "SET #ReversedDate = :at, #ReversedAmount = :amount",
                vec![of, (":at".to_owned(), s(Instant(at).text())), (":amount".to_owned(), n(amount.minor()))],
            ),
            None => ("REMOVE #ReversedDate, #ReversedAmount", vec![of]),
        };
        let values: HashMap<_, _> = values.into_iter().collect();
        let update = self.update_of(keys::receipt(&receipt.account, &receipt.id()), update, OF_PAYMENT, values);
        self.update(update, ReturnValue::None).await.map(drop)
    }

    /// The item of a record of `at`, which expires when records are no longer kept.
    fn record_item(&self, record: &impl Entity<Payments>, at: DateTime<Utc>) -> Item {
        let mut item = record.to_item();
        item.insert(TIME_TO_LIVE.to_owned(), n(expiry(at, self.receipts_kept)));
        item
    }

    /// The record of an attempt that did not succeed: a put if absent, written with its subscription.
    pub(super) fn create_attempt_record(&self, record: &AttemptRecord) -> TransactWriteItem {
        self.put_of_on(self.record_item(record, record.processed_at), ABSENT, None)
    }

    /// The record of a month that is waived.
    pub(super) fn put_waived_period(&self, waived: &WaivedPeriod) -> TransactWriteItem {
        self.put_of(self.record_item(waived, waived.waived_at))
    }

    /// getReceiptsByAccount: Query `PK = ACC#<account> AND begins_with(SK, "REC#")`, newest due date first, as many as
    /// `paging` asks for, without what has expired by `now`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_receipts_by_account(
        &self,
        account: &AccountId,
        paging: &Paging,
        now: DateTime<Utc>,
    ) -> Result<Page<Receipt>, TableError> {
        let list = List::of(keys::partition(account), keys::RECEIPTS).unexpired_at(now).backward();
        Ok(self.list(&list, paging).await?.read(|item| Receipt::from_item(&item)))
    }

    /// The receipt of `subscription` for the month `period`, under whichever due date it was paid, unless it has expired by `now`. Query
    /// `begins_with(SK, "REC#<month>")`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_receipt_of_month(
        &self,
        account: &AccountId,
        subscription: SubscriptionId,
        period: Period,
        now: DateTime<Utc>,
    ) -> Result<Option<Receipt>, TableError> {
        let list = List::of(keys::partition(account), format!("{}{period}-", keys::RECEIPTS)).unexpired_at(now);
        let all = self.list(&list, &Paging::all()).await?;
        let all: Page<Receipt> = all.read(|item| Receipt::from_item(&item));
        Ok(all.whole()?.items.into_iter().find(|receipt| receipt.subscription == subscription))
    }

    /// The receipt `id` of `account`, unless it has expired by `now`. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_receipt(
        &self,
        account: &AccountId,
        id: &ReceiptId,
        now: DateTime<Utc>,
    ) -> Result<Option<Receipt>, TableError> {
        let stored = self.get(keys::receipt(account, id)).await?;
        stored.filter(|item| !is_expired(item, now)).map(|item| Receipt::from_item(&item)).transpose()
    }
}
