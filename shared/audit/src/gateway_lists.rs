//! Compares what the table states of one account with what the gateway lists: payments, refunds and disputes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};

use super::invariants::{CLOCKS_DIFFER, Findings};
use super::{Broken, Invariant, Judge};
use billing::{
    Dispute, DisputeStatus, GatewayToken, Payment, PaymentStatus, Period, Receipt, Refund, RefundStatus, Subscription,
};
use gateways::{DisputeMade, RefundMade, RefundState};
use store::{Partition, SubscriptionKey};

/// Records must be so much younger than the start of the lists to be missed there: what they are about may have been made before.
const MARGIN: TimeDelta = TimeDelta::days(3);

/// What the gateway lists about one account.
#[derive(Clone, Debug)]
pub struct GatewayLists {
    /// The payments of its customers that this table asked for.
    pub payments: Vec<Payment>,
    /// The customers whose payments the gateway did not list.
    pub unlisted: BTreeSet<GatewayToken>,
    /// Refunds by payment; absent if the gateway did not list them, as is a payment whose refunds it did not list.
    pub refunds: Option<HashMap<GatewayToken, Vec<RefundMade>>>,
    /// Disputes by payment; absent if the gateway did not list them.
    pub disputes: Option<HashMap<GatewayToken, Vec<DisputeMade>>>,
    /// The instant from which on the lists are complete.
    pub since: DateTime<Utc>,
    /// When refunds and disputes were listed.
    pub listed_at: DateTime<Utc>,
}

impl GatewayLists {
    /// Lists of `payments` since `since`, without refunds and disputes.
    pub fn of_payments(payments: Vec<Payment>, since: DateTime<Utc>) -> Self {
        Self { payments, unlisted: BTreeSet::new(), refunds: None, disputes: None, since, listed_at: since }
    }

    /// Whether a record of that instant was certainly stored before refunds and disputes were listed.
    fn is_before_list(&self, at: DateTime<Utc>) -> bool {
        at + CLOCKS_DIFFER < self.listed_at
    }
}

impl Judge {
    /// Returns the differences between `partition` and what the gateway lists.
    pub fn judge_lists(&self, partition: &Partition, listed: &GatewayLists) -> Vec<Broken> {
        let mut findings = Findings::default();
        for subscription in &partition.subscriptions {
            payments(subscription, partition, listed, &mut findings);
        }
        // An unreadable item may be one of the refunds or disputes.
        if partition.unreadable.is_empty() {
            if let Some(made) = &listed.refunds {
                partition.receipts.iter().for_each(|receipt| refunds(receipt, partition, made, listed, &mut findings));
            }
            if let Some(made) = &listed.disputes {
                disputes(partition, made, listed, &mut findings);
            }
        }
        findings.broken
    }
}

fn payments(subscription: &Subscription, partition: &Partition, listed: &GatewayLists, findings: &mut Findings) {
    let key = SubscriptionKey::of(subscription).key();
    let made: Vec<&Payment> = listed
        .payments
        .iter()
        .filter(|payment| payment.subscription == subscription.id && payment.account == subscription.account)
        .filter(|payment| payment.status == PaymentStatus::Succeeded)
        .collect();
    let mut by_month: BTreeMap<Period, Vec<&Payment>> = BTreeMap::new();
    made.iter().for_each(|payment| by_month.entry(Period::of(payment.due_on)).or_default().push(payment));
    for (month, payments) in by_month.iter().filter(|(_, payments)| payments.len() > 1) {
        let ids: Vec<String> = payments.iter().map(|payment| payment.id.to_string()).collect();
        findings.add(Invariant::PaidOnce, &key, format!("{month} was charged by {}", ids.join(", ")));
    }
    let receipts: Vec<&Receipt> =
        partition.receipts.iter().filter(|receipt| receipt.subscription == subscription.id).collect();
    let is_open = |payment: &Payment| {
        let open = subscription.attempt.as_ref();
        open.is_some_and(|open| Period::of(open.due_on) == Period::of(payment.due_on))
    };
    for payment in made.iter().filter(|payment| !is_open(payment)) {
        match receipts.iter().find(|receipt| receipt.payment == payment.id) {
            Some(receipt) if receipt.amount == payment.amount => {}
            Some(receipt) => {
                let (stated, charged) = (receipt.amount, payment.amount);
                let what = format!("{} states {stated}, and {charged} were charged", payment.id);
                findings.add(Invariant::Receipted, &key, what);
            }
            None => findings.add(Invariant::Receipted, &key, format!("{} has no receipt", payment.id)),
        }
    }
    // What the gateway did not list is a finding of its own.
    let is_listed = |receipt: &Receipt| match &receipt.customer {
        Some(customer) => !listed.unlisted.contains(customer),
        None => listed.unlisted.is_empty(),
    };
    for receipt in receipts.iter().filter(|receipt| receipt.processed_at > listed.since + MARGIN && is_listed(receipt))
    {
        // A payment that the bank took back may be listed as failed.
        if receipt.reversal.is_none() && !made.iter().any(|payment| payment.id == receipt.payment) {
            let mut what = format!("the gateway lists no successful payment {} of its receipt", receipt.payment);
            if receipt.customer.is_none() {
                what += ", which does not say which customer was charged: it may be another one";
            }
            findings.add(Invariant::Receipted, &key, what);
        }
    }
}

fn refunds(
    receipt: &Receipt,
    partition: &Partition,
    made: &HashMap<GatewayToken, Vec<RefundMade>>,
    listed: &GatewayLists,
    findings: &mut Findings,
) {
    let id = receipt.id();
    let key = format!("{} {id}", partition.key);
    let Some(made) = made.get(&receipt.payment) else { return };
    let stored: Vec<&Refund> = partition.refunds.iter().filter(|refund| refund.receipt == id).collect();
    for made in made {
        let state = match &made.state {
            RefundState::Pending => RefundStatus::Pending,
            RefundState::Succeeded => RefundStatus::Succeeded,
            RefundState::Failed { .. } => RefundStatus::Failed,
        };
        let what = match stored.iter().find(|refund| made.is_of(refund)) {
            None if state == RefundStatus::Failed => continue,
            None => format!("the gateway has refunded {} by {}, and no refund is stored", made.amount, made.id),
            Some(refund) if refund.amount != made.amount && state != RefundStatus::Failed => {
                format!(
                    "the refund {} is of {}, and {} of {} at the gateway",
                    refund.id, refund.amount, made.id, made.amount
                )
            }
            Some(refund) if refund.status == state => continue,
            // It has changed since the gateway listed it.
            Some(refund) if !listed.is_before_list(refund.settled_at.unwrap_or(refund.created_at)) => continue,
            Some(refund) => {
                format!(
                    "the refund {} of {} is {} here and {state} at the gateway",
                    refund.id, refund.amount, refund.status
                )
            }
        };
        findings.add(Invariant::Refunded, &key, what);
    }
    let is_missing = |refund: &&&Refund| {
        refund.status != RefundStatus::Failed
            && refund.created_at > listed.since + MARGIN
            && listed.is_before_list(refund.created_at)
            && !made.iter().any(|made| made.is_of(refund))
    };
    for refund in stored.iter().filter(is_missing) {
        let Refund { id, amount, status, .. } = refund;
        let what = format!("the refund {id} of {amount} is {status} here, and the gateway does not list it");
        findings.add(Invariant::Refunded, &key, what);
    }
}

fn disputes(
    partition: &Partition,
    made: &HashMap<GatewayToken, Vec<DisputeMade>>,
    listed: &GatewayLists,
    findings: &mut Findings,
) {
    let receipted = partition.receipts.iter().map(|receipt| &receipt.payment);
    let disputed = partition.disputes.iter().map(|dispute| &dispute.payment);
    let payments: BTreeSet<&GatewayToken> = receipted.chain(disputed).collect();
    for (payment, made) in payments.iter().filter_map(|payment| made.get(*payment).map(|made| (payment, made))) {
        for DisputeMade { id, status, amount, opened_at, .. } in made {
            let what = match partition.disputes.iter().find(|stored| stored.id == *id) {
                Some(stored) if stored.status == *status => continue,
                // It has changed since the gateway listed it.
                Some(stored) if !listed.is_before_list(stored.closed_at.unwrap_or(stored.opened_at)) => continue,
                Some(stored) => format!("the dispute {id} is {} here and {status} at the gateway", stored.status),
                None if !listed.is_before_list(*opened_at) => continue,
                None => {
                    format!("the dispute {id} of {amount} of {payment} is {status} at the gateway, and is not stored")
                }
            };
            findings.add(Invariant::Disputed, &partition.key, what);
        }
    }
    // A bank debit that was returned without a dispute is stored as one, and the gateway has none of it.
    let is_missing = |stored: &&Dispute| {
        stored.status != DisputeStatus::Returned
            && stored.opened_at > listed.since + MARGIN
            && listed.is_before_list(stored.opened_at)
            && !made.get(&stored.payment).is_some_and(|made| made.iter().any(|made| made.id == stored.id))
    };
    for Dispute { id, status, .. } in partition.disputes.iter().filter(is_missing) {
        let what = format!("the dispute {id} is {status} here, and the gateway does not list it");
        findings.add(Invariant::Disputed, &partition.key, what);
    }
}
