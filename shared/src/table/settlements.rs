//! Settlements: the subscription's next state and its receipt or record, in one transaction.

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::subscriptions::read;
use super::{Table, TableError};
use crate::billing::{Settlement, Subscription};

/// What writing a settlement came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Written {
    Written,
    /// The stored item is not the one it was computed from: this is (`None`: it is gone).
    Conflict(Option<Box<Subscription>>),
    /// The receipt or record is there already though the subscription has not advanced by it.
    Duplicate,
}

impl Table {
    /// Writes `settlement`, computed from `before`: TransactWriteItems of updateSubscription with createReceipt or
    /// the attempt's record, and the records of months that are waived.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn settle(&self, before: &Subscription, settlement: &Settlement) -> Result<Written, TableError> {
        let Some((update, _)) = self.subscription_update(before, &settlement.subscription) else {
            return Ok(Written::Written);
        };
        let mut writes = vec![TransactWriteItem::builder().update(update).build()];
        writes.extend(settlement.receipt.as_ref().map(|receipt| self.create_receipt(receipt)));
        writes.extend(settlement.record.as_ref().map(|record| self.create_attempt_record(record)));
        writes.extend(settlement.waived.iter().map(|waived| self.put_waived_period(waived)));
        let Some(refused) = self.transact(writes).await? else { return Ok(Written::Written) };
        match refused.into_iter().next().flatten() {
            Some(stored) if stored.is_empty() => Ok(Written::Conflict(None)),
            Some(stored) => Ok(Written::Conflict(Some(Box::new(read(stored)?)))),
            None => Ok(Written::Duplicate),
        }
    }
}
