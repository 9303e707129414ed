//! Stores disputes as the gateway reports them, and marks the affected subscriptions and receipts.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use billing::{AccountId, Dispute, ReceiptId, Subscription};
use clock::Clock;
use store::{Paging, Table, TableError, ignore_refusal};

/// Stores disputes. From the stored disputes, computes the marks on subscriptions (payment method disputed) and on
/// receipts (payment reversed).
#[derive(Clone, Debug)]
pub struct DisputeRecorder {
    table: Table,
    clock: Arc<dyn Clock>,
}

impl DisputeRecorder {
    /// Creates the service that stores disputes in `table`.
    pub fn new(table: Table, clock: Arc<dyn Clock>) -> Self {
        Self { table, clock }
    }

    /// Stores the dispute `id` of `account` as the gateway reports it, and updates the marks on the subscriptions and
    /// the receipt. `read` requests the current state of the dispute from the gateway. `now` is the time at which the
    /// processing of the gateway's event began: its date decides for all subscriptions.
    ///
    /// Repeated, late and concurrent calls have the same result: this function first reads the stored dispute, and then
    /// `read` requests the dispute from the gateway. The stored dispute is replaced only if it has not changed in the
    /// meantime. Therefore no worker replaces a newer state of the dispute with an older state.
    ///
    /// # Errors
    /// The error of `read`, or a [`TableError`] if a request to the table fails or the stored dispute has changed. The
    /// gateway's event must then be processed again.
    pub async fn store_reported_dispute<E: From<TableError>>(
        &self,
        account: &AccountId,
        id: &str,
        read: impl Future<Output = Result<Dispute, E>>,
        now: DateTime<Utc>,
    ) -> Result<Dispute, E> {
        let all = self.table.get_disputes_by_account(account).await?;
        let stored = all.iter().find(|stored| stored.id.as_str() == id);
        let reported = read.await?;
        let receipt = reported.receipt.clone();
        let next =
            stored.map_or_else(|| reported.clone(), |stored| stored.with_reported_state(&reported, self.clock.now()));
        if stored != Some(&next) {
            self.table.write_dispute(&next, stored).await?;
        }
        self.update_dispute_and_reversal_marks(account, &receipt, now).await?;
        Ok(next)
    }

    /// Computes two marks from the stored disputes of `account`, and stores them: the dispute marks on the
    /// subscriptions of the account, and the reversal mark on the receipt `receipt`. If two workers update the marks
    /// concurrently, both repeat the update until the stored disputes no longer change, so both compute the same marks.
    /// `now` is the time at which the processing of the gateway's event began: its date decides for all subscriptions.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table fails. The caller must repeat the call.
    pub async fn update_dispute_and_reversal_marks(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        now: DateTime<Utc>,
    ) -> Result<(), TableError> {
        let mut disputes = self.table.get_disputes_by_account(account).await?;
        loop {
            let stored =
                self.table.get_subscriptions_by_account(account, &Paging::all()).await?.require_all_readable()?;
            for subscription in stored.items {
                let policy = self.table.policy();
                let day_of = |at| policy.date_at(at);
                let settled =
                    |stored: &Subscription| Ok::<_, Infallible>(stored.apply_disputes(&disputes, &policy, day_of, now));
                ignore_refusal(self.table.write_settlement(subscription, settled).await)?;
            }
            // The receipt may have expired, because a customer can dispute a debit up to 13 months after the debit.
            // Then there is no receipt to mark.
            if let Some(receipt) = self.table.get_receipt(account, receipt, now).await? {
                let reversal = receipt.reversal_from(&disputes);
                if reversal != receipt.reversal {
                    self.table.mark_reversal(&receipt, reversal).await?;
                }
            }
            let after = self.table.get_disputes_by_account(account).await?;
            if after == disputes {
                return Ok(());
            }
            disputes = after;
        }
    }
}
