//! Disputes: kept as the gateway tells them, and their payment methods marked, so that nothing more is charged to them.

use std::convert::Infallible;

use crate::billing::{Dispute, DisputeStatus, Subscription};
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

    /// Keeps `told`, a dispute as the gateway has it now. Told again, or late, it comes to the same: what is closed opens no more.
    ///
    /// The subscriptions are marked before the dispute is written. So whoever is killed or overtaken in between does it again when it
    /// is told again, and what a person has decided since stays.
    ///
    /// # Errors
    /// [`TableError`]: it is to be told again.
    pub async fn keep(&self, told: Dispute) -> Result<(), TableError> {
        let all = self.table.get_disputes_by_account(&told.account).await?;
        let stored = all.iter().find(|stored| stored.id == told.id);
        let now = stored.map_or_else(|| told.clone(), |stored| stored.told(&told));
        if stored == Some(&now) {
            return Ok(());
        }
        let others = all.iter().filter(|other| other.id != told.id);
        let mut of_method = others.chain([&now]).filter(|of| of.payment_method == now.payment_method);
        self.mark(&now, of_method.any(Dispute::keeps_from_charging)).await?;
        self.table.write_dispute(&now, stored).await
    }

    /// Marks the subscriptions of the account that are paid with what was charged, or takes their marks away.
    async fn mark(&self, dispute: &Dispute, is_disputed: bool) -> Result<(), TableError> {
        let subscriptions = self.table.get_subscriptions_by_account(&dispute.account, &Paging::all()).await?.whole()?;
        let at = is_disputed.then_some(dispute.opened_at);
        for subscription in subscriptions.items {
            let marked = |stored: &Subscription| Ok::<_, Infallible>(stored.disputed(&dispute.payment_method, at));
            self.table.rewrite_subscription(subscription, marked).await?;
        }
        Ok(())
    }
}

impl Dispute {
    /// What is stored once `told` is known.
    fn told(&self, told: &Dispute) -> Dispute {
        use DisputeStatus::{Lost, Open, Won};
        let is_older = matches!((self.status, told.status), (Won | Lost, Open) | (Won, Lost));
        if is_older {
            return self.clone();
        }
        let closed_at = if told.status == self.status { self.closed_at } else { told.closed_at };
        Dispute { closed_at, version: self.version, ..told.clone() }
    }
}
