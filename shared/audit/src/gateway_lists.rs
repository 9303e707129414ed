//! Compares the payments, refunds and disputes of one account in the table with the lists that the gateway returned. The
//! rules are those of the daily comparison.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};

use super::invariants::AccountViolations;
use super::{BrokenInvariant, Invariant, InvariantChecker};
use billing::{
    AccountId, GatewayDifference, GatewayToken, MAX_EXPECTED_CLOCK_DIFFERENCE, Money, Payment, PaymentStatus, Period,
    Receipt, Refund, RefundStatus, Subscription,
};
use gateways::{
    GatewayDispute, GatewayRefund, PaymentComparison, TimeRange, compare_dispute, compare_payment, compare_receipt,
    compare_refund, compare_stored_dispute, compare_stored_refund,
};
use store::{AccountPartition, SubscriptionKey};

/// The gateway's lists must contain a stored record only if the record is at least this much later than the start of
/// the lists. The payment, refund or dispute of an earlier record may have been created before the start of the lists.
const LIST_START_MARGIN: TimeDelta = TimeDelta::days(3);

/// The time range of the payments whose amounts [`compare_payment`] has compared: all payments in the lists.
const ALL_TIMES: TimeRange = TimeRange { from: DateTime::<Utc>::MIN_UTC, to: DateTime::<Utc>::MAX_UTC };

/// The payments, refunds and disputes of one account, as the gateway lists them.
#[derive(Clone, Debug)]
pub struct GatewayLists {
    /// The payments of all customers of the account, without the payments that another table requested.
    pub payments: Vec<Payment>,
    /// The customers for whom the gateway did not return the list of payments.
    pub unlisted: BTreeSet<GatewayToken>,
    /// The refunds, grouped by payment; `None` if the gateway did not list refunds. If the map does not contain a
    /// payment, the gateway did not list the refunds of this payment.
    pub refunds: Option<HashMap<GatewayToken, Vec<GatewayRefund>>>,
    /// The disputes, grouped by payment; `None` if the gateway did not list disputes.
    pub disputes: Option<HashMap<GatewayToken, Vec<GatewayDispute>>>,
    /// The time from which on the lists are complete.
    pub since: DateTime<Utc>,
    /// The time at which the gateway returned the lists of refunds and disputes.
    pub listed_at: DateTime<Utc>,
}

impl GatewayLists {
    /// Creates the lists of `payments` since `since`, without refunds and disputes.
    pub fn of_payments(payments: Vec<Payment>, since: DateTime<Utc>) -> Self {
        Self { payments, unlisted: BTreeSet::new(), refunds: None, disputes: None, since, listed_at: since }
    }

    /// Returns whether a record that was written at the time `at` was certainly stored before the gateway listed
    /// refunds and disputes.
    fn is_before_list(&self, at: DateTime<Utc>) -> bool {
        at + MAX_EXPECTED_CLOCK_DIFFERENCE < self.listed_at
    }

    /// Returns whether the lists of refunds and disputes must contain a record that was created at the time `at`.
    fn must_contain(&self, at: DateTime<Utc>) -> bool {
        at > self.since + LIST_START_MARGIN && self.is_before_list(at)
    }
}

impl InvariantChecker {
    /// Returns the differences between `partition` and the lists of the gateway.
    pub fn check_gateway_lists(&self, partition: &AccountPartition, listed: &GatewayLists) -> Vec<BrokenInvariant> {
        let mut violations = AccountViolations::default();
        for subscription in &partition.subscriptions {
            compare_payments(subscription, partition, listed, &mut violations);
        }
        // If an item of the account cannot be read, it may be a refund or dispute that seems to be missing, so compare
        // refunds and disputes only if all items can be read.
        if partition.unreadable.is_empty() {
            if let Some(made) = &listed.refunds {
                partition
                    .receipts
                    .iter()
                    .for_each(|receipt| compare_refunds(receipt, partition, made, listed, &mut violations));
            }
            if let Some(made) = &listed.disputes {
                compare_disputes(partition, made, listed, &mut violations);
            }
        }
        violations.broken
    }
}

/// Returns whether a person has decided about `payment`, which has no receipt: its finding is resolved, so the payment
/// is no difference, whether its money was refunded or kept. The decision does not count if a refund of the payment has
/// failed and a part of its money is not refunded: the person may have expected this refund to succeed.
fn is_payment_decided(payment: &Payment, partition: &AccountPartition, listed: &GatewayLists) -> bool {
    let is_resolved = partition.findings.iter().any(|found| found.payment == payment.id && found.resolved.is_some());
    let has_receipt = partition.receipts.iter().any(|receipt| receipt.payment == payment.id);
    let refunds = listed.refunds.as_ref().and_then(|refunds| refunds.get(&payment.id));
    let refunds = refunds.map(Vec::as_slice).unwrap_or_default();
    let (failed, made): (Vec<&GatewayRefund>, Vec<&GatewayRefund>) =
        refunds.iter().partition(|refund| refund.state.status() == RefundStatus::Failed);
    let none = Money::new(0, payment.amount.currency());
    let refunded = made.iter().try_fold(none, |sum, refund| sum.checked_add(refund.amount));
    let is_refunded = refunded.is_ok_and(|refunded| refunded.minor() >= payment.amount.minor());
    is_resolved && !has_receipt && (is_refunded || failed.is_empty())
}

/// Returns the text about the difference `found`, with the gateway's id of the payment, refund or dispute.
fn describe_difference(found: &GatewayDifference) -> String {
    format!("{}: {}", found.id, found.what)
}

/// Adds a violation for each month of `subscription` that was charged more than once, and for each difference between
/// its receipts and its payments at the gateway. Payments about which a person has decided are no difference.
fn compare_payments(
    subscription: &Subscription,
    partition: &AccountPartition,
    listed: &GatewayLists,
    violations: &mut AccountViolations,
) {
    let key = SubscriptionKey::from_subscription(subscription).key();
    let undecided: Vec<&Payment> = listed
        .payments
        .iter()
        .filter(|payment| payment.subscription == subscription.id && payment.account == subscription.account)
        .filter(|payment| payment.status == PaymentStatus::Succeeded && !is_payment_decided(payment, partition, listed))
        .collect();
    let mut by_month: BTreeMap<Period, Vec<&Payment>> = BTreeMap::new();
    undecided.iter().for_each(|payment| by_month.entry(payment.period()).or_default().push(payment));
    for (month, payments) in by_month.iter().filter(|(_, payments)| payments.len() > 1) {
        let ids: Vec<String> = payments.iter().map(|payment| payment.id.to_string()).collect();
        violations.add(Invariant::PaidOnce, &key, format!("{month} was charged more than once: {}", ids.join(", ")));
    }
    let receipts: Vec<&Receipt> =
        partition.receipts.iter().filter(|receipt| receipt.subscription == subscription.id).collect();
    for payment in undecided.iter().filter(|payment| !subscription.has_open_attempt_of(payment.period())) {
        let of_payment = receipts.iter().find(|receipt| receipt.payment == payment.id);
        let receipt = of_payment.or_else(|| receipts.iter().find(|receipt| receipt.period() == payment.period()));
        match compare_payment(payment, receipt.copied()) {
            PaymentComparison::Matches => {}
            PaymentComparison::Differs(found) | PaymentComparison::WithoutReceipt(found) => {
                violations.add(Invariant::Receipted, &key, describe_difference(&found));
            }
        }
    }
    // If the gateway did not list the payments of a customer, do not check the receipts of this customer: the missing
    // list is already reported as a violation of `Invariant::Listed`.
    let is_listed = |receipt: &Receipt| match &receipt.customer {
        Some(customer) => !listed.unlisted.contains(customer),
        None => listed.unlisted.is_empty(),
    };
    for receipt in
        receipts.iter().filter(|receipt| receipt.processed_at > listed.since + LIST_START_MARGIN && is_listed(receipt))
    {
        let payment = listed.payments.iter().find(|payment| payment.id == receipt.payment);
        let Some(mut found) = compare_receipt(receipt, payment, &ALL_TIMES) else { continue };
        if receipt.customer.is_none() {
            found.what += "; the receipt does not name the charged customer, whose payments may not be among the lists";
        }
        violations.add(Invariant::Receipted, &key, describe_difference(&found));
    }
}

/// Adds a violation for each difference between the stored refunds of `receipt` and `made`, the gateway's refunds.
fn compare_refunds(
    receipt: &Receipt,
    partition: &AccountPartition,
    made: &HashMap<GatewayToken, Vec<GatewayRefund>>,
    listed: &GatewayLists,
    violations: &mut AccountViolations,
) {
    let id = receipt.id();
    let key = format!("{} {id}", partition.key);
    let Some(made) = made.get(&receipt.payment) else { return };
    let stored: Vec<Refund> = partition.refunds.iter().filter(|refund| refund.receipt == id).cloned().collect();
    for made in made {
        // Do not compare a stored item that may have changed after the gateway returned its lists.
        let is_older = |refund: &Refund| listed.is_before_list(refund.settled_at.unwrap_or(refund.created_at));
        if stored.iter().all(|refund| !made.matches(refund) || is_older(refund)) {
            let found = compare_refund(made, &receipt.account, &receipt.payment, &stored);
            found.into_iter().for_each(|found| violations.add(Invariant::Refunded, &key, describe_difference(&found)));
        }
    }
    for refund in stored.iter().filter(|refund| listed.must_contain(refund.created_at)) {
        let found = compare_stored_refund(refund, made);
        found.into_iter().for_each(|found| violations.add(Invariant::Refunded, &key, describe_difference(&found)));
    }
}

/// Adds a violation for each difference between the stored disputes and `made`, the gateway's disputes by payment.
fn compare_disputes(
    partition: &AccountPartition,
    made: &HashMap<GatewayToken, Vec<GatewayDispute>>,
    listed: &GatewayLists,
    violations: &mut AccountViolations,
) {
    let stored = &partition.disputes;
    let receipted = partition.receipts.iter().map(|receipt| (&receipt.payment, &receipt.account));
    let disputed = stored.iter().map(|dispute| (&dispute.payment, &dispute.account));
    let payments: BTreeMap<&GatewayToken, &AccountId> = receipted.chain(disputed).collect();
    let listed_disputes = |payment: &GatewayToken| made.get(payment).map(Vec::as_slice).unwrap_or_default();
    for (payment, account) in payments {
        for dispute in listed_disputes(payment) {
            let of_table = stored.iter().find(|stored| stored.id == dispute.id);
            // Do not compare a stored item that may have changed after the gateway returned its lists.
            let changed_at = of_table.map_or(dispute.opened_at, |stored| stored.closed_at.unwrap_or(stored.opened_at));
            if listed.is_before_list(changed_at) {
                let found = compare_dispute(dispute, account, payment, stored);
                found
                    .into_iter()
                    .for_each(|found| violations.add(Invariant::Disputed, &partition.key, describe_difference(&found)));
            }
        }
    }
    for dispute in stored.iter().filter(|dispute| listed.must_contain(dispute.opened_at)) {
        let is_listed = listed_disputes(&dispute.payment).iter().any(|made| made.id == dispute.id);
        let found = compare_stored_dispute(dispute, is_listed);
        found
            .into_iter()
            .for_each(|found| violations.add(Invariant::Disputed, &partition.key, describe_difference(&found)));
    }
}
