//! Compares the payments, refunds and disputes of one account in the table with the lists that the gateway returned.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};

use super::invariants::Violations;
use super::{BrokenInvariant, Invariant, InvariantChecker};
use billing::{
    Dispute, DisputeStatus, GatewayToken, MAX_EXPECTED_CLOCK_DIFFERENCE, Money, Payment, PaymentStatus, Period,
    Receipt, Refund, RefundStatus, Subscription,
};
use gateways::{GatewayDispute, GatewayRefund};
use store::{AccountPartition, SubscriptionKey};

/// The gateway's lists must contain a stored record only if the record is at least this much later than the start of
/// the lists. The payment, refund or dispute of an earlier record may have been created before the start of the lists.
const LIST_START_MARGIN: TimeDelta = TimeDelta::days(3);

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
}

impl InvariantChecker {
    /// Returns the differences between `partition` and the lists of the gateway.
    pub fn check_gateway_lists(&self, partition: &AccountPartition, listed: &GatewayLists) -> Vec<BrokenInvariant> {
        let mut violations = Violations::default();
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
fn is_decided(payment: &Payment, partition: &AccountPartition, listed: &GatewayLists) -> bool {
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

/// Adds a violation for each month of `subscription` that was charged more than once, and for each difference between
/// its receipts and its payments at the gateway. Payments about which a person has decided are no difference.
fn compare_payments(
    subscription: &Subscription,
    partition: &AccountPartition,
    listed: &GatewayLists,
    violations: &mut Violations,
) {
    let key = SubscriptionKey::from_subscription(subscription).key();
    let made: Vec<&Payment> = listed
        .payments
        .iter()
        .filter(|payment| payment.subscription == subscription.id && payment.account == subscription.account)
        .filter(|payment| payment.status == PaymentStatus::Succeeded)
        .collect();
    let undecided: Vec<&Payment> =
        made.iter().copied().filter(|payment| !is_decided(payment, partition, listed)).collect();
    let mut by_month: BTreeMap<Period, Vec<&Payment>> = BTreeMap::new();
    undecided.iter().for_each(|payment| by_month.entry(payment.period()).or_default().push(payment));
    for (month, payments) in by_month.iter().filter(|(_, payments)| payments.len() > 1) {
        let ids: Vec<String> = payments.iter().map(|payment| payment.id.to_string()).collect();
        violations.add(Invariant::PaidOnce, &key, format!("{month} was charged more than once: {}", ids.join(", ")));
    }
    let receipts: Vec<&Receipt> =
        partition.receipts.iter().filter(|receipt| receipt.subscription == subscription.id).collect();
    for payment in undecided.iter().filter(|payment| !subscription.has_open_attempt_of(payment.period())) {
        match receipts.iter().find(|receipt| receipt.payment == payment.id) {
            Some(receipt) if receipt.amount == payment.amount => {}
            Some(receipt) => {
                let (stated, charged) = (receipt.amount, payment.amount);
                let what = format!("the receipt of {} states {stated}, but the gateway charged {charged}", payment.id);
                violations.add(Invariant::Receipted, &key, what);
            }
            None => violations.add(Invariant::Receipted, &key, format!("the payment {} has no receipt", payment.id)),
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
        // Do not check a receipt whose payment the bank reversed: the gateway may list that payment as failed.
        if receipt.reversal.is_none() && !made.iter().any(|payment| payment.id == receipt.payment) {
            let mut what = format!(
                "the payment {} has a receipt, but is missing from the gateway's list or did not succeed",
                receipt.payment
            );
            if receipt.customer.is_none() {
                what += "; the receipt does not name the charged customer, whose payments may not be among the lists";
            }
            violations.add(Invariant::Receipted, &key, what);
        }
    }
}

/// Adds a violation for each difference between the stored refunds of `receipt` and `made`, the gateway's refunds.
fn compare_refunds(
    receipt: &Receipt,
    partition: &AccountPartition,
    made: &HashMap<GatewayToken, Vec<GatewayRefund>>,
    listed: &GatewayLists,
    violations: &mut Violations,
) {
    let id = receipt.id();
    let key = format!("{} {id}", partition.key);
    let Some(made) = made.get(&receipt.payment) else { return };
    let stored: Vec<&Refund> = partition.refunds.iter().filter(|refund| refund.receipt == id).collect();
    for made in made {
        let state = made.state.status();
        let what = match stored.iter().find(|refund| made.matches(refund)) {
            None if state == RefundStatus::Failed => continue,
            None => format!("the gateway made the refund {} of {}, but no refund is stored", made.id, made.amount),
            Some(refund) if refund.amount != made.amount && state != RefundStatus::Failed => {
                format!(
                    "the refund {} is stored with {}, but the gateway made the refund {} with {}",
                    refund.id, refund.amount, made.id, made.amount
                )
            }
            Some(refund) if refund.status == state => continue,
            // Do not compare the stored item: it may have changed after the gateway returned its lists.
            Some(refund) if !listed.is_before_list(refund.settled_at.unwrap_or(refund.created_at)) => continue,
            Some(refund) => {
                format!(
                    "the refund {} of {} is {} in the table and {state} at the gateway",
                    refund.id, refund.amount, refund.status
                )
            }
        };
        violations.add(Invariant::Refunded, &key, what);
    }
    let is_missing = |refund: &&&Refund| {
        refund.status != RefundStatus::Failed
            && refund.created_at > listed.since + LIST_START_MARGIN
            && listed.is_before_list(refund.created_at)
            && !made.iter().any(|made| made.matches(refund))
    };
    for refund in stored.iter().filter(is_missing) {
        let Refund { id, amount, status, .. } = refund;
        let what = format!("the refund {id} of {amount} is {status} in the table, but the gateway does not list it");
        violations.add(Invariant::Refunded, &key, what);
    }
}

/// Adds a violation for each difference between the stored disputes and `made`, the gateway's disputes by payment.
fn compare_disputes(
    partition: &AccountPartition,
    made: &HashMap<GatewayToken, Vec<GatewayDispute>>,
    listed: &GatewayLists,
    violations: &mut Violations,
) {
    let receipted = partition.receipts.iter().map(|receipt| &receipt.payment);
    let disputed = partition.disputes.iter().map(|dispute| &dispute.payment);
    let payments: BTreeSet<&GatewayToken> = receipted.chain(disputed).collect();
    for (payment, made) in payments.iter().filter_map(|payment| made.get(*payment).map(|made| (payment, made))) {
        for GatewayDispute { id, status, amount, opened_at, .. } in made {
            let what = match partition.disputes.iter().find(|stored| stored.id == *id) {
                Some(stored) if stored.status == *status => continue,
                // Do not compare the stored item: it may have changed after the gateway returned its lists.
                Some(stored) if !listed.is_before_list(stored.closed_at.unwrap_or(stored.opened_at)) => continue,
                Some(stored) => {
                    format!("the dispute {id} is {} in the table and {status} at the gateway", stored.status)
                }
                None if !listed.is_before_list(*opened_at) => continue,
                None => {
                    format!("the dispute {id} of {amount} for {payment} is {status} at the gateway, but is not stored")
                }
            };
            violations.add(Invariant::Disputed, &partition.key, what);
        }
    }
    // A debit that the bank returned without a dispute is stored as a dispute, which the gateway does not list.
    let is_missing = |stored: &&Dispute| {
        stored.status != DisputeStatus::Returned
            && stored.opened_at > listed.since + LIST_START_MARGIN
            && listed.is_before_list(stored.opened_at)
            && !made.get(&stored.payment).is_some_and(|made| made.iter().any(|made| made.id == stored.id))
    };
    for Dispute { id, status, .. } in partition.disputes.iter().filter(is_missing) {
        let what = format!("the dispute {id} is {status} in the table, but the gateway does not list it");
        violations.add(Invariant::Disputed, &partition.key, what);
    }
}
