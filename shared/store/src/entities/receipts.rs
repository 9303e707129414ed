//! The requests for receipts (access patterns createReceipt, getReceiptsByAccount), and the writes of other payment
//! records.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{ReturnValue, TransactWriteItem};
use chrono::{DateTime, Utc};

use crate::keys;
use crate::table::payments_table::Table;
use billing::{
    AccountId, AttemptRecord, Period, Receipt, ReceiptId, ReceiptNumber, ReceiptReference, Reversal, SubscriptionId,
    WaivedPeriod,
};
use dynamo::{ABSENT, Entity as _, Instant, PrefixQuery, is_expired, n, s};
use dynamo::{Page, Paging, TableError};

impl Table {
    /// createReceipt: builds the write that creates `receipt` if it is absent, for the transaction that also updates
    /// the subscription.
    pub(crate) fn create_receipt(&self, receipt: &Receipt) -> TransactWriteItem {
        self.build_put_if(self.build_record_item(receipt, receipt.processed_at), ABSENT, None)
    }

    /// Marks the payment of `receipt` as reversed by the bank, or removes the mark if `reversal` is `None`. Writes
    /// nothing if the receipt was deleted after its expiry. Sends one UpdateItem request.
    pub async fn mark_reversal(&self, receipt: &Receipt, reversal: Option<Reversal>) -> Result<(), TableError> {
        const SAME_PAYMENT: &str = "#GatewayPaymentId = :payment";
        let payment = (":payment".to_owned(), s(&receipt.payment));
        let (update, values) = match reversal {
            Some(Reversal { at, amount }) => (
                "SET #ReversedDate = :at, #ReversedAmount = :amount",
                vec![payment, (":at".to_owned(), s(Instant(at).to_text())), (":amount".to_owned(), n(amount.minor()))],
            ),
            None => ("REMOVE #ReversedDate, #ReversedAmount", vec![payment]),
        };
        let values: HashMap<_, _> = values.into_iter().collect();
        let update =
            self.build_update(keys::key_of_receipt(&receipt.account, &receipt.id()), update, SAME_PAYMENT, values);
        self.send_update(update, ReturnValue::None).await.map(drop)
    }

    /// Builds the write that creates the record of an attempt that did not succeed, if it is absent.
    pub(crate) fn create_attempt_record(&self, record: &AttemptRecord) -> TransactWriteItem {
        self.build_put_if(self.build_record_item(record, record.processed_at), ABSENT, None)
    }

    /// Builds the write that creates or replaces the record of a waived period.
    pub(crate) fn put_waived_period(&self, waived: &WaivedPeriod) -> TransactWriteItem {
        self.build_put(self.build_record_item(waived, waived.recorded_from()))
    }

    /// getReceiptsByAccount: returns the receipts of an account that have not expired at `now`, the newest due date
    /// first. Sends a Query with `PK = ACC#<account> AND begins_with(SK, "REC#")`.
    pub async fn get_receipts_by_account(
        &self,
        account: &AccountId,
        paging: &Paging,
        now: DateTime<Utc>,
    ) -> Result<Page<Receipt>, TableError> {
        let list =
            PrefixQuery::new(keys::partition_key_of_account(account), keys::RECEIPTS).unexpired_at(now).descending();
        Ok(self.list_items(&list, paging).await?.read(|item| Receipt::from_item(&item)))
    }

    /// Returns the receipt of `subscription` for the month `period`, with any due date in that month, unless it has
    /// expired at `now`. Sends a Query with `begins_with(SK, "REC#<month>")`.
    pub async fn get_receipt_of_month(
        &self,
        account: &AccountId,
        subscription: SubscriptionId,
        period: Period,
        now: DateTime<Utc>,
    ) -> Result<Option<Receipt>, TableError> {
        let receipts = self.get_receipts_of_month(account, period, now).await?;
        Ok(receipts.into_iter().find(|receipt| receipt.subscription == subscription))
    }

    /// Returns the receipts of `account` with a due date in the month `period` that have not expired at `now`.
    async fn get_receipts_of_month(
        &self,
        account: &AccountId,
        period: Period,
        now: DateTime<Utc>,
    ) -> Result<Vec<Receipt>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_account(account), format!("{}{period}-", keys::RECEIPTS))
            .unexpired_at(now);
        let all = self.list_items(&list, &Paging::all()).await?;
        let all: Page<Receipt> = all.read(|item| Receipt::from_item(&item));
        Ok(all.require_all_readable()?.items)
    }

    /// Returns the receipt of `account` with this id or number, unless it has expired at `now`. For an id, sends one
    /// GetItem request. For a number, sends a Query for the receipts of the number's month.
    pub async fn find_receipt(
        &self,
        account: &AccountId,
        reference: &ReceiptReference,
        now: DateTime<Utc>,
    ) -> Result<Option<Receipt>, TableError> {
        match reference {
            ReceiptReference::Id(id) => self.get_receipt(account, id, now).await,
            ReceiptReference::Number(number) => {
                let receipts = self.get_receipts_of_month(account, number.period, now).await?;
                Ok(receipts.into_iter().find(|receipt| receipt.number() == *number))
            }
        }
    }

    /// Returns the receipt with this number in any account, unless it has expired at `now`. Sends one GetItem request
    /// to find the account, and a Query for the account's receipts of the number's month.
    pub async fn find_receipt_by_number(
        &self,
        number: ReceiptNumber,
        now: DateTime<Utc>,
    ) -> Result<Option<Receipt>, TableError> {
        let Some((account, _)) = self.find_subscription_by_receipt_code(number.code).await? else { return Ok(None) };
        self.find_receipt(&account, &ReceiptReference::Number(number), now).await
    }

    /// Returns the receipt `id` of `account`, unless it has expired at `now`. Sends one strongly consistent GetItem
    /// request.
    pub async fn get_receipt(
        &self,
        account: &AccountId,
        id: &ReceiptId,
        now: DateTime<Utc>,
    ) -> Result<Option<Receipt>, TableError> {
        let stored = self.get(keys::key_of_receipt(account, id)).await?;
        stored.filter(|item| !is_expired(item, now)).map(|item| Receipt::from_item(&item)).transpose()
    }
}
