//! Disputes: stored as the gateway reports them, with the marks that follow from them on subscriptions and receipts.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

use billing::{AccountId, Dispute, Policy, ReceiptId, Subscription};
use clock::Clock;
use config::BillingConfig;
use store::{Paging, Table, TableError};

/// Stores disputes and what follows from them.
#[derive(Clone, Debug)]
pub struct Disputes {
    table: Table,
    policy: Policy,
    zone: Tz,
    clock: Arc<dyn Clock>,
}

impl Disputes {
    /// Creates a store of the disputes in `table`.
    pub fn new(table: Table, config: &BillingConfig, clock: Arc<dyn Clock>) -> Self {
        Self { table, policy: config.policy.clone(), zone: config.zone, clock }
    }

    /// Stores the dispute `id` of `account` as `read` reports it, and updates the marks that follow from it. Doing it again, late
    /// or concurrently comes to the same: the stored dispute is read before the gateway is asked, and is replaced only if it is
    /// still the same, so no worker replaces a newer state by an older one.
    ///
    /// # Errors
    /// An error of `read`, or [`TableError`]: the event is to be delivered again.
    pub async fn keep<E: From<TableError>>(
        &self,
        account: &AccountId,
        id: &str,
        read: impl Future<Output = Result<Dispute, E>>,
    ) -> Result<Dispute, E> {
        let all = self.table.get_disputes_by_account(account).await?;
        let stored = all.iter().find(|stored| stored.id.as_str() == id);
        let reported = read.await?;
        let receipt = reported.receipt.clone();
        let next = stored.map_or_else(|| reported.clone(), |stored| stored.updated(&reported, self.clock.now()));
        if stored != Some(&next) {
            self.table.write_dispute(&next, stored).await?;
        }
        self.mark(account, &receipt).await?;
        Ok(next)
    }

    /// Marks the subscriptions of `account` and its receipt `receipt` by the stored disputes. If two workers do so at the same
    /// time, both end with the disputes that are stored in the end.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table fails; the marks are to be computed again.
    pub async fn mark(&self, account: &AccountId, receipt: &ReceiptId) -> Result<(), TableError> {
        let mut disputes = self.table.get_disputes_by_account(account).await?;
        loop {
            let stored = self.table.get_subscriptions_by_account(account, &Paging::all()).await?.whole()?;
            for subscription in stored.items {
                let now = self.clock.now();
                let day_of = |at: DateTime<Utc>| -> NaiveDate { at.with_timezone(&self.zone).date_naive() };
                let settled = |stored: &Subscription| {
                    Ok::<_, Infallible>(stored.settle_disputes(&disputes, &self.policy, day_of, now))
                };
                self.table.settle(subscription, settled).await?;
            }
            // It may have expired. A dispute of a debit comes up to 13 months later.
            if let Some(receipt) = self.table.get_receipt(account, receipt, self.clock.now()).await? {
                let reversal = receipt.reversed_by(&disputes);
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
