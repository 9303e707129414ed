//! What is kept of one subscription's payments, made or not, until it expires.

use chrono::{DateTime, NaiveDate, Utc};

use super::{Item, Paging, Table, TableError, keys};
use billing::{AccountId, AttemptRecord, Receipt, Records, SubscriptionId, WaivedPeriod};
use dynamo::{Entity as _, List};

impl Table {
    /// The receipts of `subscription`, its attempts that did not succeed and its months that are waived, by due date,
    /// without what has expired by `now`. Three Queries of the account's partition, of which the records of its other
    /// subscriptions are left out.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_records(
        &self,
        account: &AccountId,
        subscription: SubscriptionId,
        now: DateTime<Utc>,
    ) -> Result<Records, TableError> {
        let receipts = self.kept(account, keys::RECEIPTS, now).await?;
        let attempts = self.kept(account, keys::ATTEMPTS, now).await?;
        let waived = self.kept(account, keys::WAIVED, now).await?;
        let receipts = receipts.iter().map(Receipt::from_item);
        let attempts = attempts.iter().map(AttemptRecord::from_item);
        let waived = waived.iter().map(WaivedPeriod::from_item);
        let mut records = Records {
            receipts: receipts.collect::<Result<Vec<Receipt>, TableError>>()?,
            attempts: attempts.collect::<Result<Vec<AttemptRecord>, TableError>>()?,
            waived: waived.collect::<Result<Vec<WaivedPeriod>, TableError>>()?,
        };
        records.receipts.retain(|receipt| receipt.subscription == subscription);
        records.attempts.retain(|attempt| attempt.subscription == subscription);
        records.waived.retain(|waived| waived.subscription == subscription);
        // As text, the tenth attempt stands before the second.
        records.attempts.sort_by_key(|attempt| attempt.attempt_no);
        Ok(records)
    }

    /// The record of the attempt `no` at the payment due on `due_on`, if it did not succeed. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_attempt_record(
        &self,
        account: &AccountId,
        subscription: SubscriptionId,
        due_on: NaiveDate,
        no: u32,
    ) -> Result<Option<AttemptRecord>, TableError> {
        let stored = self.get(keys::attempt_record(account, subscription, due_on, no)).await?;
        stored.map(|item| AttemptRecord::from_item(&item)).transpose()
    }

    async fn kept(&self, account: &AccountId, prefix: &str, now: DateTime<Utc>) -> Result<Vec<Item>, TableError> {
        let list = List::of(keys::partition(account), prefix.to_owned()).unexpired_at(now);
        Ok(self.list(&list, &Paging::all()).await?.items)
    }
}
