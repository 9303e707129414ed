//! Receipts: createReceipt, getReceiptsByAccount.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{ReturnValue, TransactWriteItem};
use chrono::{DateTime, Utc};

use super::items::{AttemptRecordItem, ReceiptItem, WaivedPeriodItem};
use super::{Page, Paging, Table, TableError, keys};
use billing::{AccountId, AttemptRecord, Period, Receipt, ReceiptId, Reversal, SubscriptionId, WaivedPeriod};
use dynamo::List;
use dynamo::{ABSENT, n, s};
use dynamo::{Instant, from_item, to_item};

impl Table {
    /// createReceipt: a put if absent, to be written in one TransactWriteItems with the subscription it belongs to.
    pub(super) fn create_receipt(&self, receipt: &Receipt) -> TransactWriteItem {
        self.put_of_on(to_item(&ReceiptItem::new(receipt, self.receipts_kept)), ABSENT, None)
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

    /// The record of an attempt that did not succeed: a put if absent, written with its subscription.
    pub(super) fn create_attempt_record(&self, record: &AttemptRecord) -> TransactWriteItem {
        self.put_of_on(to_item(&AttemptRecordItem::new(record, self.receipts_kept)), ABSENT, None)
    }

    /// The record of a month that is waived.
    pub(super) fn put_waived_period(&self, waived: &WaivedPeriod) -> TransactWriteItem {
        self.put_of(to_item(&WaivedPeriodItem::new(waived, self.receipts_kept)))
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
        Ok(self.list(&list, paging).await?.read(|item| from_item::<ReceiptItem>(&item)?.try_into()))
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
        let all: Page<Receipt> = all.read(|item| from_item::<ReceiptItem>(&item)?.try_into());
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
        let stored = stored.map(|item| from_item::<ReceiptItem>(&item)).transpose()?;
        stored.filter(|receipt| !receipt.is_expired(now)).map(Receipt::try_from).transpose()
    }
}
