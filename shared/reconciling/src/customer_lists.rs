//! The comparison of a day's payments in a table that was restored from a backup, if the gateway does not list the
//! payments of a day. Instead, the gateway lists the payments of each customer that the table contains.

use billing::{DayReconciliation, DifferenceKind, GatewayDifference, GatewayToken, Payment};
use chrono::{DateTime, Utc};
use gateways::{GatewayError, TimeRange};
use store::AccountPartition;

use crate::reconciler::{ReconcileError, Reconciler};
use crate::request_retries::with_retries;

/// The number of accounts after which the comparison stores its position, from which it continues after an
/// interruption.
const ACCOUNTS_PER_UPDATE: usize = 1_000;
/// The number of requests to the gateway after which the comparison stores its position.
const REQUESTS_PER_UPDATE: usize = 100;
/// The number of consecutive customers for which the gateway may return no usable response. If there are more, the
/// gateway is probably out of order, and the comparison is interrupted.
const MAX_CONSECUTIVE_FAILURES: usize = 10;

impl Reconciler {
    /// Compares the payments in `range` of all customers of the next accounts with the receipts, and records the result
    /// in `day`. Sends one request to the gateway for each customer. This comparison does not find a payment of a
    /// customer whom the table does not contain. A customer whose payments the gateway does not list, for example
    /// because the customer was removed there, becomes a difference.
    pub(crate) async fn compare_payments_of_customers(
        &mut self,
        range: &TimeRange,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        let mut partitions = self.table.account_partitions_after(day.position.take());
        let (mut requests, mut failures) = (0_usize, 0_usize);
        for _ in 0..ACCOUNTS_PER_UPDATE {
            let Some(partition) = partitions.next().await? else {
                day.customers_compared = true;
                return Ok(());
            };
            if !partition.unreadable.is_empty() {
                self.add_difference(
                    day,
                    customer_not_compared(&partition, None, "an item of the account cannot be read"),
                );
            }
            let customers = partition.customer_tokens();
            for customer in &customers {
                match self.list_payments_of_customer(customer, range.from).await {
                    Ok(mut payments) => {
                        payments.retain(|payment| range.contains(payment.created_at));
                        self.compare_listed_payments(&payments, day).await?;
                        failures = 0;
                    }
                    // The gateway responded, so it is available.
                    Err(GatewayError::Unreadable { reason }) => {
                        failures = 0;
                        self.add_difference(day, customer_not_compared(&partition, Some(customer), &reason));
                    }
                    Err(GatewayError::Unknown { .. }) if failures < MAX_CONSECUTIVE_FAILURES => {
                        failures = failures.saturating_add(1);
                        let reason = "the gateway does not list the payments of a customer of the account";
                        self.add_difference(day, customer_not_compared(&partition, Some(customer), reason));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            requests = requests.saturating_add(customers.len());
            if requests >= REQUESTS_PER_UPDATE {
                break;
            }
        }
        day.position = partitions.position().map(str::to_owned);
        Ok(())
    }

    /// Returns the payments of `customer` since `from`. Repeats the request once if the gateway returns no usable
    /// response.
    async fn list_payments_of_customer(
        &self,
        customer: &GatewayToken,
        from: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        match with_retries(|| self.gateway.payments_of_customer(customer, from)).await {
            Err(GatewayError::Unknown { .. }) => {
                with_retries(|| self.gateway.payments_of_customer(customer, from)).await
            }
            listed => listed,
        }
    }
}

/// Returns the difference that reports that `customer` of the account in `partition` was not compared, for `reason`;
/// `None` if no customer of the account was compared. Its id names one customer, so that a person who accepts it accepts
/// no difference of another customer of the account.
fn customer_not_compared(
    partition: &AccountPartition,
    customer: Option<&GatewayToken>,
    reason: &str,
) -> GatewayDifference {
    let account = partition.key.split_once('#').map_or(partition.key.as_str(), |(_, account)| account);
    let id = customer.map_or(account, GatewayToken::as_str).to_owned();
    GatewayDifference { kind: DifferenceKind::CustomerNotCompared, id, what: format!("{account}: {reason}") }
}
