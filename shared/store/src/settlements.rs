//! Settlements: a subscription's next state with its receipt or records, in one transaction.

use super::{Table, TableError};
use billing::{Settlement, Subscription};
use dynamo::key_of;
use dynamo::{Next, Rewritten};

impl Table {
    /// Writes the settlement that `compute` makes of `stored`: TransactWriteItems of updateSubscription with
    /// createReceipt or the attempt's record, and the records of months that are waived. It is computed again when
    /// somebody else writes in between.
    ///
    /// # Errors
    /// [`TableError`]; [`TableError::Exists`] if the receipt or record is there though the subscription has not
    /// advanced by it.
    pub async fn settle<R>(
        &self,
        stored: Subscription,
        compute: impl Fn(&Subscription) -> Result<Settlement, R>,
    ) -> Result<Rewritten<Subscription, R>, TableError> {
        let next = |stored: &Subscription| Ok(self.next(compute(stored)?));
        self.rewrite(stored, next, |item| Err(TableError::Exists { key: key_of(item) })).await
    }

    /// What `settlement` writes.
    pub(super) fn next(&self, settlement: Settlement) -> Next<Subscription> {
        let Settlement { subscription, receipt, record, waived } = settlement;
        let receipt = receipt.iter().map(|receipt| self.create_receipt(receipt));
        let record = record.iter().map(|record| self.create_attempt_record(record));
        let waived = waived.iter().map(|waived| self.put_waived_period(waived));
        Next { item: subscription, answer: None, records: receipt.chain(record).chain(waived).collect() }
    }
}
