//! The requests for refunds. These requests also update the refunded amount that each receipt stores.

use aws_sdk_dynamodb::types::TransactWriteItem;

use crate::keys;
use crate::runs::support_refunds::DailyRefundLimit;
use crate::table::payments_table::Table;
use billing::{AccountId, NewAction, Receipt, ReceiptId, Refund, RefundStatus, SucceededRefunds};
use chrono::{DateTime, Utc};
use dynamo::{
    ABSENT, Entity as _, Instant, ItemRewrite, NotRewritten, PRESENT, PrefixQuery, TransactionOutcome, key_of_item, n,
    s, values, with_next_version,
};
use dynamo::{Paging, TableError};

impl Table {
    /// Returns the refunds of a receipt, in the order of their ids. Sends a Query with `begins_with(SK, "RFD#<due
    /// date>#SKU#<sku>#SUB#<sub>#")`.
    pub async fn get_refunds_by_receipt(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
    ) -> Result<Vec<Refund>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_account(account), keys::sort_key_prefix_of_refunds(receipt));
        Ok(self
            .list_items(&list, &Paging::all())
            .await?
            .read(|item| Refund::from_item(&item))
            .require_all_readable()?
            .items)
    }

    /// Returns the sum of the refunds of `receipt` that have succeeded; `None` if there are none. Sends one Query
    /// request, or no request if the receipt states that nothing is refunded.
    pub async fn get_succeeded_refunds(&self, receipt: &Receipt) -> Result<Option<SucceededRefunds>, TableError> {
        if receipt.refunded.minor() == 0 {
            return Ok(None);
        }
        let refunds = self.get_refunds_by_receipt(&receipt.account, &receipt.id()).await?;
        Ok(receipt.succeeded_refunds(&refunds))
    }

    /// Creates `refund` with the action-log entry of `action`, and adds the amount of `refund` to the refunded amount
    /// of `receipt`. Returns `false`, and writes nothing, if the refunded amount has changed since `receipt` was read,
    /// or if the refund exists. Sends one TransactWriteItems request.
    pub async fn reserve_refund(
        &self,
        refund: &Refund,
        receipt: &Receipt,
        action: Option<&NewAction>,
        limit: Option<&DailyRefundLimit>,
    ) -> Result<bool, TableError> {
        let mut writes =
            vec![self.build_put_if(refund.to_item(), ABSENT, None), self.build_refund_reservation(refund, receipt)?];
        writes.extend(action.map(|action| self.build_action_put(&action.on_refund(refund))));
        writes.extend(limit.map(|limit| self.build_support_refund(limit, refund.amount)));
        Ok(matches!(self.transact_with_retries(writes).await?, TransactionOutcome::Written))
    }

    /// Replaces the failed refund `failed` with `refund`, a new try with the same id. Also adds the amount of `refund`
    /// to the refunded amount of `receipt` again, and writes the action-log entry of `action`. Returns the stored
    /// refund. Returns `None`, and writes nothing, if the refund or the refunded amount has changed since it was read.
    /// Sends one TransactWriteItems request.
    pub async fn reserve_refund_again(
        &self,
        failed: &Refund,
        refund: Refund,
        receipt: &Receipt,
        action: Option<&NewAction>,
        limit: Option<&DailyRefundLimit>,
    ) -> Result<Option<Refund>, TableError> {
        let written = with_next_version(failed, refund);
        let Some(update) = self.build_versioned_update(failed, &written) else { return Ok(None) };
        let update = TransactWriteItem::builder().update(update).build();
        let mut writes = vec![update, self.build_refund_reservation(&written, receipt)?];
        writes.extend(action.map(|action| self.build_action_put(&action.on_refund(&written))));
        writes.extend(limit.map(|limit| self.build_support_refund(limit, written.amount)));
        Ok(matches!(self.transact_with_retries(writes).await?, TransactionOutcome::Written).then_some(written))
    }

    /// Builds the update that adds the amount of `refund` to the refunded amount of `receipt`, on condition that the
    /// refunded amount is unchanged since `receipt` was read.
    fn build_refund_reservation(&self, refund: &Refund, receipt: &Receipt) -> Result<TransactWriteItem, TableError> {
        const SET_RESERVED_AMOUNT: &str = "SET #RefundedAmount = :after, #RefundedDate = :requested_at";
        let is_unchanged = match receipt.refunded.minor() {
            0 => "attribute_exists(#PK) AND (attribute_not_exists(#RefundedAmount) OR #RefundedAmount = :seen)",
            _ => "#RefundedAmount = :seen",
        };
        let key = || keys::key_of_receipt(&receipt.account, &receipt.id());
        let after = receipt.refunded.checked_add(refund.amount);
        let after = after.map_err(|_| TableError::unreadable(key(), "the refunded amount is too large"))?;
        let values = values([
            (":seen", n(receipt.refunded.minor())),
            (":after", n(after.minor())),
            (":requested_at", s(Instant(refund.created_at).to_text())),
        ]);
        Ok(TransactWriteItem::builder()
            .update(self.build_update(key(), SET_RESERVED_AMOUNT, is_unchanged, values))
            .build())
    }

    /// Acquires the lease of the pending `refund` until `until`, if its lease is unchanged since the refund was read.
    /// Sends one UpdateItem request per try.
    ///
    /// Unlike other leases, this lease stores no token of its holder. A refund is always read before it is leased, so
    /// its unchanged lease shows that no other worker has leased it after that read. After a lost response,
    /// [`dynamo::DynamoTable::rewrite_item`] recognizes its own write.
    pub async fn lease_refund(&self, refund: Refund, until: DateTime<Utc>) -> Result<Refund, NotRewritten<()>> {
        let expired = refund.leased_until;
        let leased = |stored: &Refund| {
            let is_free = stored.status == RefundStatus::Pending && stored.leased_until == expired;
            if is_free {
                Ok(ItemRewrite::without_records(Refund { leased_until: until, ..stored.clone() }))
            } else {
                Err(())
            }
        };
        self.rewrite_item(refund, leased, |item| Err(TableError::Exists { key: key_of_item(item) })).await
    }

    /// Changes the refund `stored` with `change`, and computes the change again on a write conflict. If `change`
    /// returns `None`, nothing is written. Returns the stored refund; `None` if it does not exist any more. Sends one
    /// UpdateItem request per try.
    pub async fn change_refund(
        &self,
        stored: Refund,
        change: impl Fn(&Refund) -> Option<Refund>,
    ) -> Result<Option<Refund>, TableError> {
        self.change_item(stored, change).await
    }

    /// Like [`Table::change_refund`]. If the changed refund has failed, also subtracts its amount from the refunded
    /// amount of its receipt, in the same transaction.
    pub async fn settle_refund(
        &self,
        stored: Refund,
        settle: impl Fn(&Refund) -> Option<Refund>,
    ) -> Result<Option<Refund>, TableError> {
        let next = |stored: &Refund| {
            let settled = settle(stored)?;
            let records = match settled.status {
                RefundStatus::Failed => vec![self.build_refund_release(&settled)],
                RefundStatus::Pending | RefundStatus::Succeeded => Vec::new(),
            };
            Some(ItemRewrite { records, ..ItemRewrite::without_records(settled) })
        };
        self.change_with_records(stored, next).await
    }

    /// Builds the update that releases the amount of the failed `refund`: it subtracts this amount from the refunded
    /// amount of the receipt. The refunded amount also includes the amounts of pending refunds.
    fn build_refund_release(&self, refund: &Refund) -> TransactWriteItem {
        const SUBTRACT_FROM_REFUNDED_AMOUNT: &str = "SET #RefundedAmount = #RefundedAmount - :amount";
        let values = values([(":amount", n(refund.amount.minor()))]);
        let key = keys::key_of_receipt(&refund.account, &refund.receipt);
        TransactWriteItem::builder()
            .update(self.build_update(key, SUBTRACT_FROM_REFUNDED_AMOUNT, PRESENT, values))
            .build()
    }
}
