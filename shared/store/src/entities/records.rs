//! Reads the payment records of one subscription: its receipts, failed attempts and waived periods.

use chrono::{DateTime, NaiveDate, Utc};

use crate::keys;
use crate::table::payments_table::Table;
use billing::{AccountId, AttemptRecord, PaymentRecords, Receipt, SubscriptionId, WaivedPeriod};
use dynamo::{Entity as _, PrefixQuery};
use dynamo::{Item, Paging, TableError};

impl Table {
    /// Returns the receipts, the failed attempts and the waived periods of `subscription` that have not expired at
    /// `now`, in the order of their due dates. Sends three Query requests for the account's partition. The queries also
    /// read the records of the account's other subscriptions, which are not returned.
    pub async fn get_payment_records(
        &self,
        account: &AccountId,
        subscription: SubscriptionId,
        now: DateTime<Utc>,
    ) -> Result<PaymentRecords, TableError> {
        let receipts = self.unexpired_items(account, keys::RECEIPTS, now).await?;
        let attempts = self.unexpired_items(account, keys::ATTEMPTS, now).await?;
        let waived = self.unexpired_items(account, keys::WAIVED_PERIODS, now).await?;
        let receipts = receipts.iter().map(Receipt::from_item);
        let attempts = attempts.iter().map(AttemptRecord::from_item);
        let waived = waived.iter().map(WaivedPeriod::from_item);
        let mut records = PaymentRecords {
            receipts: receipts.collect::<Result<Vec<Receipt>, TableError>>()?,
            attempts: attempts.collect::<Result<Vec<AttemptRecord>, TableError>>()?,
            waived: waived.collect::<Result<Vec<WaivedPeriod>, TableError>>()?,
        };
        records.receipts.retain(|receipt| receipt.subscription == subscription);
        records.attempts.retain(|attempt| attempt.subscription == subscription);
        records.waived.retain(|waived| waived.subscription == subscription);
        // The sort key contains the attempt's number as text, so attempt 10 comes before attempt 2.
        records.attempts.sort_by_key(|attempt| attempt.attempt_no);
        Ok(records)
    }

    /// Returns the record of the attempt number `no` to charge the due date `due_on`, if the attempt failed. Sends one
    /// strongly consistent GetItem request.
    pub async fn get_attempt_record(
        &self,
        account: &AccountId,
        subscription: SubscriptionId,
        due_on: NaiveDate,
        no: u32,
    ) -> Result<Option<AttemptRecord>, TableError> {
        let stored = self.get(keys::key_of_attempt_record(account, subscription, due_on, no)).await?;
        stored.map(|item| AttemptRecord::from_item(&item)).transpose()
    }

    /// Returns the items of `account` whose sort keys begin with `prefix` and that have not expired at `now`.
    async fn unexpired_items(
        &self,
        account: &AccountId,
        prefix: &str,
        now: DateTime<Utc>,
    ) -> Result<Vec<Item>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_account(account), prefix.to_owned()).unexpired_at(now);
        Ok(self.list_items(&list, &Paging::all()).await?.items)
    }
}
