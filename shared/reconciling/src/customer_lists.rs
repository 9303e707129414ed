//! The comparison of payments at a gateway that does not list the payments of a day, in a table that was restored from a
//! backup: compares the payments of each customer that the table contains.

use billing::DayReconciliation;
use gateways::TimeRange;

use crate::day::{ReconcileError, Reconciler};
use crate::retry::with_retries;

/// The number of accounts after which the position is stored.
const ACCOUNTS_PER_UPDATE: usize = 1_000;
/// The number of requests to the gateway after which the position is stored.
const REQUESTS_PER_UPDATE: usize = 100;

impl Reconciler {
    /// Compares the payments in `range` of all customers of the next accounts with the receipts, and records the result in
    /// `day`. Sends one request to the gateway for each customer. A payment of a customer whom the table does not contain is
    /// not found.
    pub(crate) async fn compare_payments_of_customers(
        &mut self,
        range: &TimeRange,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        let gateway = self.gateway.clone();
        let mut partitions = self.table.partitions_after(day.position.take());
        let mut requests = 0_usize;
        for _ in 0..ACCOUNTS_PER_UPDATE {
            let Some(partition) = partitions.next().await? else {
                day.customers_compared = true;
                return Ok(());
            };
            let customers = partition.customers();
            for customer in &customers {
                let mut payments = with_retries(|| gateway.payments_of(customer, range.from)).await?;
                payments.retain(|payment| range.contains(payment.created_at));
                self.compare_listed_payments(&payments, day).await?;
            }
            requests = requests.saturating_add(customers.len());
            if requests >= REQUESTS_PER_UPDATE {
                break;
            }
        }
        day.position = partitions.position().map(str::to_owned);
        Ok(())
    }
}
