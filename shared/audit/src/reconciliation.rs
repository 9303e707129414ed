//! Reconciliation: reads the lists of payments, refunds and disputes at the gateway, and compares the table with these
//! lists, account by account.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ulid::Ulid;

use super::{BrokenInvariant, GatewayLists, Invariant, InvariantChecker};
use billing::{GatewayToken, Payment};
use gateways::{GatewayDispute, GatewayError, GatewayRefund, Refunds, UnreadableObject};
use store::AccountPartition;

/// The number of consecutive requests without a usable response after which a test request checks that the gateway is
/// available.
const MAX_FAILURES: u32 = 10;

/// The maximum number of retries of a request that the gateway has throttled (refused because of too many requests).
const MAX_THROTTLED: u32 = 5;
/// The longest wait before the retry of a throttled request.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The shortest wait before the retry of a throttled request. It is also the wait if the gateway does not return a time
/// to wait.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// A reconciliation of a table with its gateway.
#[derive(Debug)]
pub struct Reconciliation {
    gateway: Arc<dyn Refunds>,
    checker: InvariantChecker,
    /// The id of the table. Payments that another table requested are ignored.
    table: Ulid,
    /// The start of the time range of the gateway's lists.
    since: DateTime<Utc>,
    refunds: RefundList,
    /// The disputes, grouped by payment; `None` if the gateway did not list them.
    disputes: Option<HashMap<GatewayToken, Vec<GatewayDispute>>>,
    /// The refunds and disputes that cannot be read, grouped by payment.
    unreadable: HashMap<GatewayToken, Vec<UnreadableObject>>,
    /// The number of consecutive requests without a usable response.
    failures: u32,
}

/// How the gateway lists refunds.
#[derive(Debug)]
enum RefundList {
    /// All refunds, grouped by payment.
    All(HashMap<GatewayToken, Vec<GatewayRefund>>),
    /// The gateway can only list the refunds of one payment, so one request is sent for each receipt and for each
    /// resolved finding.
    ByPayment,
    /// The gateway did not list the refunds, so they are not compared.
    None,
}

impl Reconciliation {
    /// Starts the reconciliation of the table with the id `table`: requests the lists of all refunds and disputes that
    /// were created at `gateway` since the time of the oldest stored records. Also returns a violation for each list
    /// that the gateway refused.
    ///
    /// # Errors
    /// [`GatewayError`] if the gateway is not available.
    pub async fn begin(
        gateway: Arc<dyn Refunds>,
        checker: InvariantChecker,
        table: Ulid,
    ) -> Result<(Self, Vec<BrokenInvariant>), GatewayError> {
        let since = checker.now - checker.records_kept;
        let (refunds, unreadable) = (RefundList::None, HashMap::new());
        let mut started = Self { gateway, checker, table, since, refunds, disputes: None, unreadable, failures: 0 };
        let (mut not_listed, mut unreadable) = (Vec::new(), Vec::new());
        let gateway = started.gateway.clone();
        match started.request_list(|| gateway.refunds_since(since)).await? {
            Ok(Some(all)) => {
                unreadable.extend(all.unreadable);
                started.refunds = RefundList::All(group_by_payment(all.items));
            }
            Ok(None) => started.refunds = RefundList::ByPayment,
            Err(error) => not_listed.push(listing_violation("refunds", &format!("refunds are not compared: {error}"))),
        }
        match started.request_list(|| gateway.disputes_since(since)).await? {
            Ok(None) => {}
            Ok(Some(all)) => {
                unreadable.extend(all.unreadable);
                let of_payments = all.items.into_iter().filter_map(|made| Some((made.payment.clone()?, made)));
                started.disputes = Some(group_by_payment(of_payments));
            }
            Err(error) => {
                not_listed.push(listing_violation("disputes", &format!("disputes are not compared: {error}")))
            }
        }
        started.unreadable =
            group_by_payment(unreadable.into_iter().filter_map(|object| Some((object.payment.clone()?, object))));
        Ok((started, not_listed))
    }

    /// Returns the differences between `partition` and the gateway. The compared payments are those of every customer
    /// that a subscription, an open attempt, a receipt or an attempt record contains. A customer whose payments the
    /// gateway does not list, and a refund or dispute of a payment of the account that cannot be read, is reported as a
    /// violation.
    ///
    /// # Errors
    /// [`GatewayError`] if the gateway refuses the key, throttles a request even after its retries, or returns no
    /// usable response to several requests in a row. If a single request has no usable response, this function returns
    /// only a violation.
    pub async fn compare_account(
        &mut self,
        partition: &AccountPartition,
    ) -> Result<Vec<BrokenInvariant>, GatewayError> {
        let mut lists = GatewayLists {
            disputes: self.disputes.as_ref().map(|all| entries_of_partition(all, partition)),
            listed_at: self.checker.now,
            ..GatewayLists::of_payments(Vec::new(), self.since)
        };
        let mut broken = Vec::new();
        self.request_payments(partition, &mut lists, &mut broken).await?;
        lists.refunds = match &self.refunds {
            RefundList::All(all) => Some(entries_of_partition(all, partition)),
            RefundList::None => None,
            RefundList::ByPayment => Some(self.request_refunds(partition, &mut broken).await?),
        };
        broken.extend(self.unreadable_objects(partition));
        broken.extend(self.checker.check_gateway_lists(partition, &lists));
        Ok(broken)
    }

    /// Adds the payments of the customers and receipts of `partition` to `lists`. Adds a violation to `broken` for each
    /// list or payment that the gateway did not return.
    async fn request_payments(
        &mut self,
        partition: &AccountPartition,
        lists: &mut GatewayLists,
        broken: &mut Vec<BrokenInvariant>,
    ) -> Result<(), GatewayError> {
        let (gateway, since) = (self.gateway.clone(), self.since);
        for customer in partition.customer_tokens() {
            match self.send_with_retries(|| gateway.payments_of_customer(customer, since)).await? {
                Ok(payments) => {
                    let is_of_table = |payment: &Payment| payment.table.is_none_or(|table| table == self.table);
                    // A payment that the gateway lists for two customers is still one payment.
                    for payment in payments.into_iter().filter(is_of_table) {
                        if !lists.payments.contains(&payment) {
                            lists.payments.push(payment);
                        }
                    }
                }
                Err(error) => {
                    let what = format!("the payments of the customer {customer} are not compared: {error}");
                    broken.push(listing_violation(&partition.key, &what));
                    lists.unlisted.insert(customer.clone());
                }
            }
        }
        for payment in unlisted_payments(partition, lists) {
            match self.send_with_retries(|| gateway.payment(payment)).await? {
                Ok(paid) => {
                    lists.payments.extend(paid.filter(|paid| paid.table.is_none_or(|table| table == self.table)))
                }
                Err(error) => {
                    let what = format!("the payment {payment} of a receipt is not compared: {error}");
                    broken.push(listing_violation(&partition.key, &what));
                }
            }
        }
        Ok(())
    }

    /// Returns the refunds of each payment of `partition`, grouped by payment. Adds a violation to `broken` for each
    /// payment whose refunds the gateway did not return.
    async fn request_refunds(
        &mut self,
        partition: &AccountPartition,
        broken: &mut Vec<BrokenInvariant>,
    ) -> Result<HashMap<GatewayToken, Vec<GatewayRefund>>, GatewayError> {
        let gateway = self.gateway.clone();
        let mut refunds = HashMap::new();
        let receipted = partition.receipts.iter().map(|receipt| &receipt.payment);
        for payment in receipted.chain(payments_of_resolved_findings(partition)) {
            match self.send_with_retries(|| gateway.refunds_of_payment(payment)).await? {
                Ok(made) => drop(refunds.insert(payment.clone(), made)),
                Err(error) => {
                    let what = format!("the refunds of {payment} are not compared: {error}");
                    broken.push(listing_violation(&partition.key, &what));
                }
            }
        }
        Ok(refunds)
    }

    /// Returns a violation for each refund and dispute of the payments of `partition` that cannot be read.
    fn unreadable_objects(&self, partition: &AccountPartition) -> Vec<BrokenInvariant> {
        let receipted = partition.receipts.iter().map(|receipt| &receipt.payment);
        let disputed = partition.disputes.iter().map(|dispute| &dispute.payment);
        let payments: BTreeSet<&GatewayToken> = receipted.chain(disputed).collect();
        let unreadable = payments.iter().filter_map(|id| self.unreadable.get(*id)).flatten();
        unreadable
            .map(|UnreadableObject { id, reason, .. }| {
                listing_violation(&partition.key, &format!("{id} is not compared: {reason}"))
            })
            .collect()
    }

    /// Requests a list like [`Reconciliation::send_with_retries`]. If the gateway key lacks the permission for this
    /// list, the inner result is also an error: only this list is not compared.
    async fn request_list<T, F>(&mut self, request: impl Fn() -> F) -> Result<Result<T, GatewayError>, GatewayError>
    where
        F: Future<Output = Result<T, GatewayError>>,
    {
        match self.send_with_retries(request).await {
            Err(error @ GatewayError::Unusable { .. }) => Ok(Err(error)),
            result => result,
        }
    }

    /// Sends a request, and repeats it after a wait while the gateway throttles it. The outer error means that the
    /// gateway is not available; the inner error concerns only this request.
    async fn send_with_retries<T, F>(&mut self, send: impl Fn() -> F) -> Result<Result<T, GatewayError>, GatewayError>
    where
        F: Future<Output = Result<T, GatewayError>>,
    {
        let mut throttled = 0;
        loop {
            match send().await {
                Ok(response) => {
                    self.failures = 0;
                    return Ok(Ok(response));
                }
                Err(GatewayError::Throttled { retry_after }) if throttled < MAX_THROTTLED => {
                    throttled += 1;
                    tokio::time::sleep(retry_after.unwrap_or(SHORTEST_WAIT).clamp(SHORTEST_WAIT, LONGEST_WAIT)).await;
                }
                // The gateway responded, so it is available.
                Err(error @ GatewayError::Unreadable { .. }) => {
                    self.failures = 0;
                    return Ok(Err(error));
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

/// Returns the payments of receipts that do not contain the customer, if the lists of the customers do not contain
/// these payments. Earlier versions of this software wrote receipts without a customer.
fn unlisted_payments<'a>(partition: &'a AccountPartition, lists: &GatewayLists) -> Vec<&'a GatewayToken> {
    let without_customer = partition.receipts.iter().filter(|receipt| receipt.customer.is_none());
    let payments = without_customer.map(|receipt| &receipt.payment);
    payments.filter(|payment| !lists.payments.iter().any(|listed| listed.id == **payment)).collect()
}

/// Returns the violation for a list that the gateway did not return, of the item or list `key`.
fn listing_violation(key: &str, what: &str) -> BrokenInvariant {
    BrokenInvariant { invariant: Invariant::Listed, key: key.to_owned(), what: what.to_owned() }
}

/// Groups `all`, pairs of a payment and its refund or dispute, by payment.
fn group_by_payment<T>(all: impl IntoIterator<Item = (GatewayToken, T)>) -> HashMap<GatewayToken, Vec<T>> {
    let mut by_payment: HashMap<GatewayToken, Vec<T>> = HashMap::new();
    all.into_iter().for_each(|(payment, made)| by_payment.entry(payment).or_default().push(made));
    by_payment
}

/// Returns the entries of `all` that belong to payments of `partition`. A payment without entries gets an empty list.
fn entries_of_partition<T: Clone>(
    all: &HashMap<GatewayToken, Vec<T>>,
    partition: &AccountPartition,
) -> HashMap<GatewayToken, Vec<T>> {
    let receipted = partition.receipts.iter().map(|receipt| &receipt.payment);
    let disputed = partition.disputes.iter().map(|dispute| &dispute.payment);
    let of = |payment: &GatewayToken| (payment.clone(), all.get(payment).cloned().unwrap_or_default());
    receipted.chain(disputed).chain(payments_of_resolved_findings(partition)).map(of).collect()
}

/// Returns the payments of `partition` without a receipt about which a person has decided.
fn payments_of_resolved_findings(partition: &AccountPartition) -> impl Iterator<Item = &GatewayToken> {
    partition.findings.iter().filter(|finding| finding.resolved.is_some()).map(|finding| &finding.payment)
}
