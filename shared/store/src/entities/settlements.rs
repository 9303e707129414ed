//! Settlements: the new state of a subscription with its receipt or other payment records, written in one transaction.

use crate::table::payments_table::Table;
use billing::{NewAction, Settlement, Subscription};
use dynamo::TableError;
use dynamo::{ABSENT, Entity as _, ItemRewrite, NotRewritten, key_of_item};

impl Table {
    /// Writes the settlement that `compute` returns for `stored`, and computes the settlement again on a write
    /// conflict. Sends one TransactWriteItems request per try. The request updates the subscription, creates the
    /// receipt or the attempt record, and writes the records of waived periods. Returns the written settlement, whose
    /// subscription is the stored one.
    ///
    /// # Errors
    /// [`NotRewritten`] if nothing was written; [`TableError::Exists`] if the receipt or the attempt record exists
    /// already, although the stored subscription is still in the state before this settlement. This is an inconsistency
    /// of the table.
    pub async fn write_settlement<R>(
        &self,
        stored: Subscription,
        compute: impl Fn(&Subscription) -> Result<Settlement, R>,
    ) -> Result<Settlement, NotRewritten<R>> {
        self.write_settlement_with_action(stored, None, compute).await
    }

    /// Like [`Table::write_settlement`], with the action-log entry of `action` in the same transaction.
    ///
    /// # Errors
    /// The same errors as in [`Table::write_settlement`].
    pub async fn write_settlement_with_action<R>(
        &self,
        stored: Subscription,
        action: Option<&NewAction>,
        compute: impl Fn(&Subscription) -> Result<Settlement, R>,
    ) -> Result<Settlement, NotRewritten<R>> {
        let next = |stored: &Subscription| {
            let settlement = compute(stored)?;
            let log_entry = action.map(|action| {
                let entry = action.on_subscription(Some(stored), &settlement.subscription);
                self.build_action_put(&entry)
            });
            Ok((ItemRewrite { log_entry, ..self.rewrite_of_settlement(&settlement) }, settlement))
        };
        let exists = |item: &dynamo::Item| Err(TableError::Exists { key: key_of_item(item) });
        let (subscription, settlement) = self.rewrite_with_output(stored, next, exists).await?;
        Ok(Settlement { subscription, ..settlement })
    }

    /// Converts `settlement` to the new content of the subscription and the writes of its receipt and other records.
    pub(crate) fn rewrite_of_settlement(&self, settlement: &Settlement) -> ItemRewrite<Subscription> {
        let Settlement { subscription, receipt, refunds, record, waived } = settlement;
        let receipt = receipt.iter().map(|receipt| self.create_receipt(receipt));
        let refunds = refunds.iter().map(|refund| self.build_put_if(refund.to_item(), ABSENT, None));
        let record = record.iter().map(|record| self.create_attempt_record(record));
        let waived = waived.iter().map(|waived| self.put_waived_period(waived));
        let records = receipt.chain(refunds).chain(record).chain(waived).collect();
        ItemRewrite { records, ..ItemRewrite::without_records(subscription.clone()) }
    }
}
