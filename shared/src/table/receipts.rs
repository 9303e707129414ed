//! Receipts: createReceipt, getReceiptsByAccount.

use aws_sdk_dynamodb::types::TransactWriteItem;
use chrono::{DateTime, Utc};

use super::items::{AttemptRecordItem, ReceiptItem, from_item, to_item};
use super::{Table, TableError, all_pages, keys, n, s};
use crate::billing::{AccountId, AttemptRecord, Receipt};

impl Table {
    /// createReceipt: a put if absent, to be written in one TransactWriteItems with the subscription it belongs to.
    pub(super) fn create_receipt(&self, receipt: &Receipt) -> TransactWriteItem {
        self.put_if_absent(to_item(&ReceiptItem::new(receipt, self.receipts_kept)))
    }

    /// The record of an attempt that did not succeed: a put if absent, written with its subscription.
    pub(super) fn create_attempt_record(&self, record: &AttemptRecord) -> TransactWriteItem {
        self.put_if_absent(to_item(&AttemptRecordItem::new(record, self.receipts_kept)))
    }

    /// getReceiptsByAccount: Query `PK = ACC#<account> AND begins_with(SK, "REC#")`, all pages, newest due date first.
    /// TTL deletes within days, so what has expired by `now` is filtered out.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_receipts_by_account(
        &self,
        account: &AccountId,
        now: DateTime<Utc>,
    ) -> Result<Vec<Receipt>, TableError> {
        const KEYS: &str = "#PK = :account AND begins_with(#SK, :receipts)";
        const UNEXPIRED: &str = "#TTL > :now";
        let query = self
            .query(KEYS, Some(UNEXPIRED))
            .expression_attribute_values(":account", s(keys::partition(account)))
            .expression_attribute_values(":receipts", s(keys::RECEIPTS))
            .expression_attribute_values(":now", n(now.timestamp()))
            .scan_index_forward(false);
        let items = all_pages(query).await?;
        items.iter().map(|item| from_item::<ReceiptItem>(item)?.try_into()).collect()
    }
}
