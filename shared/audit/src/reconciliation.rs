//! Reconciliation: reads the gateway's lists account by account, and compares the table with them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ulid::Ulid;

use super::{Broken, GatewayLists, Invariant, Judge};
use billing::{GatewayToken, Payment};
use gateways::{DisputeMade, GatewayError, RefundMade, Refunds};
use store::Partition;

/// After so many requests in a row without a usable response, the gateway is asked whether it responds at all.
const MAX_FAILURES: u32 = 10;

/// A request that the gateway refuses because of too many requests is repeated so many times, after at most this long.
const MAX_THROTTLED: u32 = 5;
const LONGEST_WAIT: Duration = Duration::from_secs(30);
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// One comparison of a table with the lists of its gateway.
#[derive(Debug)]
pub struct Reconciliation {
    gateway: Arc<dyn Refunds>,
    judge: Judge,
    table: Ulid,
    since: DateTime<Utc>,
    refunds: RefundList,
    disputes: Option<HashMap<GatewayToken, Vec<DisputeMade>>>,
    failures: u32,
}

/// How refunds are listed.
#[derive(Debug)]
enum RefundList {
    /// All of them are here, by payment.
    All(HashMap<GatewayToken, Vec<RefundMade>>),
    /// The gateway lists refunds by payment only.
    ByPayment,
    /// The gateway did not list them.
    None,
}

impl Reconciliation {
    /// Begins to compare the table with the id `table` with `gateway`: lists all refunds and disputes for as long as records are kept.
    /// Returns what could not be listed as well.
    ///
    /// # Errors
    /// [`GatewayError`] if the gateway cannot be used now.
    pub async fn begin(
        gateway: Arc<dyn Refunds>,
        judge: Judge,
        table: Ulid,
    ) -> Result<(Self, Vec<Broken>), GatewayError> {
        let since = judge.now - judge.records_kept;
        let mut begun = Self { gateway, judge, table, since, refunds: RefundList::None, disputes: None, failures: 0 };
        let mut unlisted = Vec::new();
        let gateway = begun.gateway.clone();
        match begun.listed(|| gateway.refunds_since(since)).await? {
            Ok(Some(all)) => begun.refunds = RefundList::All(by_payment(all)),
            Ok(None) => begun.refunds = RefundList::ByPayment,
            Err(error) => unlisted.push(finding("refunds", &format!("refunds are not compared: {error}"))),
        }
        match begun.listed(|| gateway.disputes_since(since)).await? {
            Ok(None) => {}
            Ok(Some(all)) => {
                let of_payments = all.into_iter().filter_map(|made| Some((made.payment.clone()?, made)));
                begun.disputes = Some(by_payment(of_payments));
            }
            Err(error) => unlisted.push(finding("disputes", &format!("disputes are not compared: {error}"))),
        }
        Ok((begun, unlisted))
    }

    /// Returns the differences between `partition` and the gateway: what its customers have paid, by every customer that a subscription,
    /// an open attempt, a receipt or an attempt record names.
    ///
    /// # Errors
    /// [`GatewayError`] if the gateway cannot be used any more. A customer whose payments it does not list is a finding.
    pub async fn compare(&mut self, partition: &Partition) -> Result<Vec<Broken>, GatewayError> {
        let (gateway, since) = (self.gateway.clone(), self.since);
        let mut lists = GatewayLists {
            disputes: self.disputes.as_ref().map(|all| of_partition(all, partition)),
            listed_at: self.judge.now,
            ..GatewayLists::of_payments(Vec::new(), since)
        };
        let mut broken = Vec::new();
        for customer in customers(partition) {
            match self.answered(|| gateway.payments_of(customer, since)).await? {
                Ok(payments) => {
                    let is_ours = |payment: &Payment| payment.table.is_none_or(|table| table == self.table);
                    lists.payments.extend(payments.into_iter().filter(is_ours));
                }
                Err(error) => {
                    let what = format!("the payments of the customer {customer} are not compared: {error}");
                    broken.push(finding(&partition.key, &what));
                    lists.unlisted.insert(customer.clone());
                }
            }
        }
        for payment in unlisted_payments(partition, &lists) {
            match self.answered(|| gateway.payment(payment)).await? {
                Ok(paid) => {
                    lists.payments.extend(paid.filter(|paid| paid.table.is_none_or(|table| table == self.table)))
                }
                Err(error) => {
                    let what = format!("the payment {payment} of a receipt is not compared: {error}");
                    broken.push(finding(&partition.key, &what));
                }
            }
        }
        lists.refunds = match &self.refunds {
            RefundList::All(all) => Some(of_partition(all, partition)),
            RefundList::None => None,
            RefundList::ByPayment => {
                let mut refunds = HashMap::new();
                for receipt in &partition.receipts {
                    match self.answered(|| gateway.refunds_of(&receipt.payment)).await? {
                        Ok(made) => drop(refunds.insert(receipt.payment.clone(), made)),
                        Err(error) => {
                            let what = format!("the refunds of {} are not compared: {error}", receipt.payment);
                            broken.push(finding(&partition.key, &what));
                        }
                    }
                }
                Some(refunds)
            }
        };
        broken.extend(self.judge.judge_lists(partition, &lists));
        Ok(broken)
    }

    /// As [`Reconciliation::answered`], of a list that a key may have no permission for.
    async fn listed<T, F>(&mut self, request: impl Fn() -> F) -> Result<Result<T, GatewayError>, GatewayError>
    where
        F: Future<Output = Result<T, GatewayError>>,
    {
        match self.answered(request).await {
            Err(error @ GatewayError::Unusable { .. }) => Ok(Err(error)),
            answered => answered,
        }
    }

    /// Sends a request, and again after a while if there were too many. The inner error is about this request only.
    async fn answered<T, F>(&mut self, request: impl Fn() -> F) -> Result<Result<T, GatewayError>, GatewayError>
    where
        F: Future<Output = Result<T, GatewayError>>,
    {
        let mut throttled = 0;
        loop {
            match request().await {
                Ok(answer) => {
                    self.failures = 0;
                    return Ok(Ok(answer));
                }
                Err(GatewayError::Throttled { retry_after }) if throttled < MAX_THROTTLED => {
                    throttled += 1;
                    tokio::time::sleep(retry_after.unwrap_or(SHORTEST_WAIT).clamp(SHORTEST_WAIT, LONGEST_WAIT)).await;
                }
                Err(error @ GatewayError::Unknown { .. }) => {
                    self.failures += 1;
                    if self.failures == MAX_FAILURES {
                        self.gateway.account().await?;
                        self.failures = 0;
                    }
                    return Ok(Err(error));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns every customer of the gateway that `partition` names.
fn customers(partition: &Partition) -> BTreeSet<&GatewayToken> {
    let current = partition.subscriptions.iter().map(|subscription| &subscription.payment_method.customer);
    let open = partition.subscriptions.iter().filter_map(|subscription| subscription.attempt.as_ref());
    let open = open.map(|attempt| &attempt.payment_method.customer);
    let receipts = partition.receipts.iter().filter_map(|receipt| receipt.customer.as_ref());
    let attempts = partition.attempts.iter().filter_map(|attempt| attempt.customer.as_ref());
    current.chain(open).chain(receipts).chain(attempts).collect()
}

/// Returns the payments of receipts of earlier versions, which do not say which customer was charged, that no customer's list has.
fn unlisted_payments<'a>(partition: &'a Partition, lists: &GatewayLists) -> Vec<&'a GatewayToken> {
    let of_unknown = partition.receipts.iter().filter(|receipt| receipt.customer.is_none());
    let payments = of_unknown.map(|receipt| &receipt.payment);
    payments.filter(|payment| !lists.payments.iter().any(|listed| listed.id == **payment)).collect()
}

fn finding(key: &str, what: &str) -> Broken {
    Broken { invariant: Invariant::Listed, key: key.to_owned(), what: what.to_owned() }
}

fn by_payment<T>(all: impl IntoIterator<Item = (GatewayToken, T)>) -> HashMap<GatewayToken, Vec<T>> {
    let mut by_payment: HashMap<GatewayToken, Vec<T>> = HashMap::new();
    all.into_iter().for_each(|(payment, made)| by_payment.entry(payment).or_default().push(made));
    by_payment
}

/// Returns those of `all` that are of payments of `partition`. A payment without any has an empty list.
fn of_partition<T: Clone>(all: &HashMap<GatewayToken, Vec<T>>, partition: &Partition) -> HashMap<GatewayToken, Vec<T>> {
    let receipted = partition.receipts.iter().map(|receipt| &receipt.payment);
    let disputed = partition.disputes.iter().map(|dispute| &dispute.payment);
    let of = |payment: &GatewayToken| (payment.clone(), all.get(payment).cloned().unwrap_or_default());
    receipted.chain(disputed).map(of).collect()
}
