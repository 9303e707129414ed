//! Refunds, each with what it takes of its receipt.

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::{Paging, Rewritten, Table, TableError, keys};
use billing::{AccountId, Receipt, ReceiptId, Refund, RefundStatus};
use chrono::{DateTime, Utc};
use dynamo::{ABSENT, Entity as _, List, Next, PRESENT, TransactAnswer, expiry, key_of, n, values, versioned_after};

impl Table {
    /// When `receipt` expires, in seconds since 1970.
    pub fn receipt_expires(&self, receipt: &Receipt) -> i64 {
        expiry(receipt.processed_at, self.receipts_kept)
    }

    /// The refunds of a receipt, in the order of their ids. Query `begins_with(SK, "RFD#<due date>#SKU#<sku>#SUB#<sub>#")`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_refunds_by_receipt(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
    ) -> Result<Vec<Refund>, TableError> {
        let list = List::of(keys::partition(account), keys::refunds(receipt));
        Ok(self.list(&list, &Paging::all()).await?.read(|item| Refund::from_item(&item)).whole()?.items)
    }

    /// Creates `refund` and takes its amount from what is left of `receipt`. Returns `false` if the receipt is no longer as it was read, or
    /// the refund exists. TransactWriteItems.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn reserve_refund(&self, refund: &Refund, receipt: &Receipt) -> Result<bool, TableError> {
        let writes = vec![self.put_of_on(refund.to_item(), ABSENT, None), self.reserve(refund, receipt)?];
        Ok(matches!(self.transact_when_free(writes).await?, TransactAnswer::Done))
    }

    /// Writes `refund` over `failed`, the same refund, and takes its amount from what is left of `receipt` again. Returns the stored refund;
    /// `None` if one of them is no longer as it was read. TransactWriteItems.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn reserve_refund_again(
        &self,
        failed: &Refund,
        refund: Refund,
        receipt: &Receipt,
    ) -> Result<Option<Refund>, TableError> {
        let written = versioned_after(failed, refund);
        let Some(update) = self.versioned_update(failed, &written) else { return Ok(None) };
        let update = TransactWriteItem::builder().update(update).build();
        let writes = vec![update, self.reserve(&written, receipt)?];
        Ok(matches!(self.transact_when_free(writes).await?, TransactAnswer::Done).then_some(written))
    }

    /// Returns the write that takes the amount of `refund` from what is left of `receipt`, on condition that it is as it was read.
    fn reserve(&self, refund: &Refund, receipt: &Receipt) -> Result<TransactWriteItem, TableError> {
        const RESERVE: &str = "SET #RefundedAmount = :after";
        let seen = match receipt.refunded.minor() {
            0 => "attribute_exists(#PK) AND (attribute_not_exists(#RefundedAmount) OR #RefundedAmount = :seen)",
            _ => "#RefundedAmount = :seen",
        };
        let key = || keys::receipt(&receipt.account, &receipt.id());
        let after = receipt.refunded.checked_add(refund.amount);
        let after = after.map_err(|_| TableError::unreadable(key(), "more is refunded than a number holds"))?;
        let values = values([(":seen", n(receipt.refunded.minor())), (":after", n(after.minor()))]);
        Ok(TransactWriteItem::builder().update(self.update_of(key(), RESERVE, seen, values)).build())
    }

    /// Takes the lease of the pending refund `seen` until `until`, if it is stored with the same lease still. UpdateItem.
    ///
    /// It has no token of a holder, as other leases have: a refund is always read before it is leased, so the write rule tells
    /// whether another worker has leased it since, and recognizes our own write after a lost response.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn lease_refund(&self, seen: Refund, until: DateTime<Utc>) -> Result<Rewritten<Refund, ()>, TableError> {
        let expired = seen.leased_until;
        let leased = |stored: &Refund| {
            let is_free = stored.status == RefundStatus::Pending && stored.leased_until == expired;
            if is_free { Ok(Next::only(Refund { leased_until: until, ..stored.clone() })) } else { Err(()) }
        };
        self.rewrite(seen, leased, |item| Err(TableError::Exists { key: key_of(item) })).await
    }

    /// Writes what `change` makes of `stored`, or of what is stored by then; `None` of it leaves that. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn change_refund(
        &self,
        stored: Refund,
        change: impl Fn(&Refund) -> Option<Refund>,
    ) -> Result<Option<Refund>, TableError> {
        self.change(stored, change).await
    }

    /// As [`Table::change_refund`]; what has failed is given back to what is left of the receipt, in the same transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn settle_refund(
        &self,
        stored: Refund,
        settle: impl Fn(&Refund) -> Option<Refund>,
    ) -> Result<Option<Refund>, TableError> {
        let next = |stored: &Refund| {
            let settled = settle(stored)?;
            let records = match settled.status {
                RefundStatus::Failed => vec![self.give_back(&settled)],
                RefundStatus::Pending | RefundStatus::Succeeded => Vec::new(),
            };
            Some(Next { records, ..Next::only(settled) })
        };
        self.change_with(stored, next).await
    }

    fn give_back(&self, refund: &Refund) -> TransactWriteItem {
        const GIVE_BACK: &str = "SET #RefundedAmount = #RefundedAmount - :amount";
        let values = values([(":amount", n(refund.amount.minor()))]);
        let key = keys::receipt(&refund.account, &refund.receipt);
        TransactWriteItem::builder().update(self.update_of(key, GIVE_BACK, PRESENT, values)).build()
    }
}
