//! Checks whether the items of one account obey the invariants.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{NaiveDate, TimeDelta};

use super::consistency::contradiction_with_receipt;
use super::invariants::{AccountViolations, BrokenInvariant, Invariant, InvariantChecker};
use billing::{
    Dispute, Finding, Period, Receipt, Refund, RefundStatus, Reversal, Subscription, SubscriptionStatus, WaivedPeriod,
    WaivedReason, days_after,
};
use store::{AccountPartition, SubscriptionKey};

/// The maximum time for which a refund may be pending at a bank ("Refund and cancel payments" in Stripe's
/// documentation: 5 to 10 business days).
const MAX_REFUND_PENDING: TimeDelta = TimeDelta::days(14);

impl InvariantChecker {
    /// Returns the violations in `partition`, the items of one account.
    pub fn check_account(&self, partition: &AccountPartition) -> Vec<BrokenInvariant> {
        let mut violations = AccountViolations { broken: Vec::new() };
        for error in &partition.unreadable {
            violations.add(Invariant::Readable, &partition.key, error.to_string());
        }
        if partition.account.is_none() && !partition.subscriptions.is_empty() {
            violations.add(Invariant::Owned, &partition.key, "subscriptions exist, but the account does not");
        }
        self.check_stored_items(partition, &mut violations);
        self.check_owners(partition, &mut violations);
        self.check_refunds(partition, &mut violations);
        self.check_disputes(partition, &mut violations);
        check_findings(partition, &mut violations);
        for subscription in &partition.subscriptions {
            let key = SubscriptionKey::from_subscription(subscription).key();
            self.check_months(subscription, partition, &mut violations);
            self.check_attributes(subscription, partition, &mut violations);
            self.check_recorded_times(subscription, &key.to_string(), partition, &mut violations);
            if let Some(what) = index_violation(subscription) {
                violations.add(Invariant::Indexed, &key, what);
            }
            if subscription.shard >= self.shards {
                let (shard, shards) = (subscription.shard, self.shards);
                violations.add(
                    Invariant::ShardSwept,
                    &key,
                    format!("the subscription is in shard {shard}, but the table has {shards} shards, numbered from 0"),
                );
            }
            for what in self.date_violations(subscription, &partition.waived) {
                violations.add(Invariant::DatesNear, &key, what);
            }
        }
        violations.broken
    }

    /// Adds a violation for each receipt whose refunds are wrong, and for each refund that has been pending for too
    /// long.
    fn check_refunds(&self, partition: &AccountPartition, violations: &mut AccountViolations) {
        // If an item of the account cannot be read, it may be a receipt or a refund. The sums could then seem wrong
        // although they are correct, so skip this check.
        if !partition.unreadable.is_empty() {
            return;
        }
        for receipt in &partition.receipts {
            let id = receipt.id();
            let of_receipt = || partition.refunds.iter().filter(|refund| refund.receipt == id);
            let of_other =
                |refund: &Refund| contradiction_with_receipt(receipt, refund.payment.as_str(), refund.amount);
            for what in of_receipt().filter_map(of_other) {
                violations.add(
                    Invariant::Refunded,
                    format!("{} {id}", partition.key),
                    format!("a refund is wrong: {what}"),
                );
            }
            let of_receipt = of_receipt();
            let counted = of_receipt.filter(|refund| refund.status != RefundStatus::Failed);
            let sum: i128 = counted.map(|refund| i128::from(refund.amount.minor())).sum();
            let (stated, paid) = (receipt.refunded, receipt.amount);
            if sum != i128::from(stated.minor()) || stated.minor() > paid.minor() {
                let what = format!(
                    "the receipt of {paid} states that {stated} are refunded, but its refunds total {sum} minor units"
                );
                violations.add(Invariant::Refunded, format!("{} {id}", partition.key), what);
            }
        }
        let is_old = |refund: &&Refund| self.now.signed_duration_since(refund.created_at) > MAX_REFUND_PENDING;
        let pending = partition.refunds.iter().filter(|refund| refund.status == RefundStatus::Pending);
        for refund in pending.filter(is_old) {
            let key = format!("{} {}", partition.key, refund.receipt);
            let what = format!("the refund {} has been pending for too long; request it again", refund.id);
            violations.add(Invariant::Refunded, key, what);
        }
    }

    /// Adds a violation for each subscription with a wrong dispute mark, and for each receipt with a wrong dispute or
    /// reversal.
    fn check_disputes(&self, partition: &AccountPartition, violations: &mut AccountViolations) {
        // If an item of the account cannot be read, it may be a dispute. A correct dispute mark could then seem wrong,
        // so skip this check.
        if !partition.unreadable.is_empty() {
            return;
        }
        for subscription in &partition.subscriptions {
            let marked = subscription.with_dispute_mark(&partition.disputes);
            if marked.disputed_at.is_some() != subscription.disputed_at.is_some() {
                let what = match marked.disputed_at {
                    Some(since) => {
                        format!("the payment method has been disputed since {since}, but charges are not stopped")
                    }
                    None => "charges of the payment method are stopped, but no stored dispute stops them".to_owned(),
                };
                violations.add(Invariant::Disputed, SubscriptionKey::from_subscription(subscription).key(), what);
            }
        }
        for receipt in &partition.receipts {
            let id = receipt.id();
            let of_other =
                |dispute: &Dispute| contradiction_with_receipt(receipt, dispute.payment.as_str(), dispute.amount);
            for what in partition.disputes.iter().filter(|dispute| dispute.receipt == id).filter_map(of_other) {
                violations.add(
                    Invariant::Disputed,
                    format!("{} {id}", partition.key),
                    format!("a dispute is wrong: {what}"),
                );
            }
            let reversal = receipt.reversal_from(&partition.disputes);
            if reversal.map(|reversal| reversal.amount) != receipt.reversal.map(|reversal| reversal.amount) {
                let what = match reversal {
                    Some(Reversal { amount, .. }) => {
                        format!(
                            "the bank reversed {amount}, but the receipt does not show it: resend the gateway's event"
                        )
                    }
                    None => {
                        "the receipt shows that the bank reversed the payment, but no stored dispute does".to_owned()
                    }
                };
                violations.add(Invariant::Disputed, format!("{} {}", partition.key, receipt.id()), what);
            }
        }
    }

    /// Adds a violation for each record of a subscription that does not exist.
    fn check_owners(&self, partition: &AccountPartition, violations: &mut AccountViolations) {
        let known: BTreeSet<_> = partition.subscriptions.iter().map(|subscription| subscription.id).collect();
        // Skip this check if an item of the account cannot be read, because that item may be the subscription that
        // seems to be missing. Also skip it during and after an erasure, which removes the subscriptions but keeps
        // their records.
        let is_being_erased = partition.account.as_ref().is_some_and(|account| account.erasure_requested_at.is_some());
        if !partition.unreadable.is_empty() || partition.erased.is_some() || is_being_erased {
            return;
        }
        let receipts = partition.receipts.iter().map(|receipt| (receipt.subscription, receipt.due_on, "receipt"));
        let waived = partition.waived.iter().map(|waived| (waived.subscription, waived.due_on, "waived month"));
        let attempts = partition.attempts.iter().map(|attempt| (attempt.subscription, attempt.due_on, "attempt"));
        let disputes =
            partition.disputes.iter().map(|dispute| (dispute.receipt.subscription, dispute.receipt.due_on, "dispute"));
        let all = receipts.chain(waived).chain(attempts).chain(disputes);
        for (id, due_on, kind) in all.filter(|(id, ..)| !known.contains(id)) {
            violations.add(
                Invariant::Owned,
                &partition.key,
                format!("the {kind} of {due_on} belongs to the subscription {id}, which does not exist"),
            );
        }
    }

    /// Checks that each month of `subscription` is exactly one of paid, waived and owed. Months whose records may have
    /// expired are not checked.
    fn check_months(
        &self,
        subscription: &Subscription,
        partition: &AccountPartition,
        violations: &mut AccountViolations,
    ) {
        let key = SubscriptionKey::from_subscription(subscription).key();
        let of_subscription = |receipt: &&Receipt| receipt.subscription == subscription.id;
        let mut paid: BTreeMap<Period, u32> = BTreeMap::new();
        for receipt in partition.receipts.iter().filter(of_subscription) {
            *paid.entry(receipt.period()).or_default() += 1;
        }
        let waived = partition.waived.iter().filter(|waived| waived.subscription == subscription.id);
        let waived: BTreeSet<Period> = waived.map(WaivedPeriod::period).collect();
        for (month, times) in &paid {
            if *times > 1 {
                violations.add(Invariant::PaidOnce, &key, format!("{month} has {times} receipts"));
            }
            if waived.contains(month) {
                violations.add(Invariant::MonthAccountedFor, &key, format!("{month} is both paid and waived"));
            }
        }
        let owed_from = subscription.due_period();
        for month in paid.keys().chain(&waived).filter(|month| **month >= owed_from) {
            violations.add(Invariant::MonthAccountedFor, &key, format!("{month} is paid or waived, but still owed"));
        }
        let recorded_from = self.today.checked_sub_signed(self.records_kept).map_or(owed_from, Period::from_day).next();
        let first = Period::from_day(subscription.first_due_on).max(recorded_from);
        let months = std::iter::successors(Some(first), |month| Some(month.next()));
        for month in months.take_while(|month| *month < owed_from) {
            if !paid.contains_key(&month) && !waived.contains(&month) {
                violations.add(
                    Invariant::MonthAccountedFor,
                    &key,
                    format!("{month} is neither paid nor waived nor owed"),
                );
            }
        }
    }

    /// Returns a description of each impossible date of `subscription`. `waived` are the waived months of its account.
    fn date_violations(&self, subscription: &Subscription, waived: &[WaivedPeriod]) -> Vec<String> {
        let mut violations = Vec::new();
        let Subscription { due_on, first_due_on, .. } = subscription;
        // A person may waive months in advance, one after the other.
        let is_waived_by_person = |month: &Period| {
            waived.iter().any(|waived| {
                waived.subscription == subscription.id
                    && waived.period() == *month
                    && matches!(waived.reason, WaivedReason::Merchant | WaivedReason::PaidElsewhere)
            })
        };
        let next_month = Period::from_day(self.today).next();
        let mut months = std::iter::successors(Some(next_month), |month| Some(month.next()));
        let latest = months.find(|month| !is_waived_by_person(month)).unwrap_or(next_month);
        let is_far = subscription.due_period() > latest && due_on > first_due_on;
        if is_far && !self.is_paid_in_advance(subscription) {
            violations.push(format!("the next due date is {due_on}, but it cannot be after {latest}"));
        }
        if let Some(on) = subscription.next_payment_on.filter(|on| !self.is_payment_date_possible(subscription, *on)) {
            violations.push(format!(
                "the next charge is planned for {on}, which is too early or too late for the due date {due_on}"
            ));
        }
        if let Some(attempt) = &subscription.attempt {
            let (until, at) = (attempt.leased_until, attempt.claimed_at);
            if self.present().is_lease_too_late(until) || self.present().is_in_future(at) {
                violations
                    .push(format!("an attempt was claimed at {at} until {until}: the clock of the worker was ahead"));
            }
        }
        violations
    }

    /// Returns whether `on` can be the next payment date of `subscription`. While an attempt is open, a run must find
    /// the subscription by tomorrow, to look up the attempt. The attempt may have been claimed before its due date, by
    /// a worker whose clock was ahead.
    pub(super) fn is_payment_date_possible(&self, subscription: &Subscription, on: NaiveDate) -> bool {
        match subscription.attempt {
            Some(_) => on <= days_after(self.today, 1),
            None => {
                on >= subscription.due_on && on <= subscription.latest_next_payment_on(self.longest_gap, self.today)
            }
        }
    }
}

/// Adds a violation for each open finding (a successful payment without a receipt) of `partition`, and for each
/// subscription with a wrong number of open findings.
fn check_findings(partition: &AccountPartition, violations: &mut AccountViolations) {
    let open: Vec<&Finding> = partition.findings.iter().filter(|finding| finding.resolved.is_none()).collect();
    for finding in &open {
        let key = format!("{} {} {}", partition.key, finding.due_on, finding.subscription);
        let what = format!(
            "the payment {} of {} has no receipt: {}",
            finding.payment,
            finding.amount,
            finding.reason.sentence()
        );
        violations.add(Invariant::Resolved, key, what);
    }
    // If an item of the account cannot be read, it may be a finding. A correct count of findings could then seem wrong,
    // so skip the check of the counts.
    if !partition.unreadable.is_empty() {
        return;
    }
    for subscription in &partition.subscriptions {
        let blocking = open.iter().filter(|finding| finding.subscription == subscription.id && finding.blocks).count();
        if usize::try_from(subscription.open_findings) != Ok(blocking) {
            let what = format!(
                "the subscription counts {} findings that block charges, but there are {blocking}",
                subscription.open_findings
            );
            violations.add(Invariant::Resolved, SubscriptionKey::from_subscription(subscription).key(), what);
        }
    }
}

/// Returns a description of the violation if an index contains `subscription` although it must not contain it, or does
/// not contain `subscription` although it must contain it. Returns `None` if the indexes are correct.
fn index_violation(subscription: &Subscription) -> Option<String> {
    let Subscription { status, attempt, next_payment_on, next_reminder_on, .. } = subscription;
    match (status.is_chargeable(), attempt, next_payment_on) {
        (_, Some(_), None) => {
            Some("an attempt is open, but the payment index does not contain the subscription".to_owned())
        }
        (true, None, None) => Some(format!("the subscription is {status}, but the payment index does not contain it")),
        (false, None, Some(on)) => {
            Some(format!("the subscription is {status}, but the payment index contains it on {on}"))
        }
        _ if *status != SubscriptionStatus::Active && next_reminder_on.is_some() => {
            Some(format!("the subscription is {status}, but the reminder index contains it"))
        }
        _ => None,
    }
}
