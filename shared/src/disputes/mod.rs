//! Disputes: kept as the gateway tells them, and their payment methods marked, so that nothing more is charged to them.

use std::convert::Infallible;
use std::future::Future;

use crate::billing::{AccountId, Dispute, Subscription};
use crate::table::{Paging, Table, TableError};

/// Keeps disputes.
#[derive(Clone, Debug)]
pub struct Disputes {
    table: Table,
}

impl Disputes {
    /// The disputes of payments in `table`.
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// Keeps the dispute `id` of `account` as `read` says that it stands, and marks what it was charged to. Told again, late or twice at
    /// the same time, it comes to the same: what is stored is read before the gateway is asked, and is written over only if it is
    /// still that. So nobody writes what is older than what is there.
    ///
    /// # Errors
    /// `read`'s, or [`TableError`]: it is to be told again.
    pub async fn keep<E: From<TableError>>(
        &self,
        account: &AccountId,
        id: &str,
        read: impl Future<Output = Result<Dispute, E>>,
    ) -> Result<Dispute, E> {
        let all = self.table.get_disputes_by_account(account).await?;
        let stored = all.iter().find(|stored| stored.id.as_str() == id);
        let told = read.await?;
        let now = stored.map_or_else(|| told.clone(), |stored| stored.as_told(&told));
        if stored != Some(&now) {
            self.table.write_dispute(&now, stored).await?;
        }
        self.mark(account).await?;
        Ok(now)
    }

    /// Marks the subscriptions of `account` by its disputes. Who was slower than another one marks by what is stored in the end.
    async fn mark(&self, account: &AccountId) -> Result<(), TableError> {
        let mut disputes = self.table.get_disputes_by_account(account).await?;
        loop {
            let stored = self.table.get_subscriptions_by_account(account, &Paging::all()).await?.whole()?;
            for subscription in stored.items {
                let marked = |stored: &Subscription| Ok::<_, Infallible>(stored.disputed_by(&disputes));
                self.table.rewrite_subscription(subscription, marked).await?;
            }
            let after = self.table.get_disputes_by_account(account).await?;
            if after == disputes {
                return Ok(());
            }
            disputes = after;
        }
    }
}

impl Dispute {
    /// What is stored once it stands as `told`.
    fn as_told(&self, told: &Dispute) -> Dispute {
        let closed_at = if told.status == self.status { self.closed_at } else { told.closed_at };
        Dispute { closed_at, version: self.version, ..told.clone() }
    }
}
