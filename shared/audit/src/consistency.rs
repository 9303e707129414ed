//! Checks whether the attributes of each subscription are consistent: with each other, and with the records of the
//! account. The rules follow from the functions of [`billing`] that compute these attributes.

use std::collections::BTreeMap;

use billing::{
    AttemptRecord, LeadDays, Money, Period, Receipt, Subscription, SubscriptionStatus, attempt_contradiction,
    days_after,
};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use store::{AccountPartition, RecordExpiry, SubscriptionKey};

use super::invariants::{AccountViolations, Invariant, InvariantChecker};

/// The longest time from the expiry of an item (its TTL) until DynamoDB deletes the item ("Using time to live (TTL) in
/// DynamoDB" in the DynamoDB Developer Guide: within a few days).
const MAX_DELETION_DELAY: TimeDelta = TimeDelta::days(7);

/// The longest retention of payment records that can be configured.
const MAX_RETENTION: TimeDelta = TimeDelta::days(3_650);

impl InvariantChecker {
    /// Adds a violation for each item of `partition` that contradicts its key, expires at a wrong time, or is stored
    /// twice.
    pub(super) fn check_stored_items(&self, partition: &AccountPartition, violations: &mut AccountViolations) {
        for altered in &partition.altered {
            let what = format!("unexpected or missing: {}", altered.attributes.join(", "));
            violations.add(Invariant::Consistent, &altered.key, what);
        }
        for expiry in &partition.expiries {
            if let Some(what) = self.expiry_violation(expiry) {
                violations.add(Invariant::Expiring, &expiry.key, what);
            }
        }
        let keys =
            partition.subscriptions.iter().map(|s| (s.id.to_string(), SubscriptionKey::from_subscription(s).key()));
        for (id, keys) in find_repeated_names(keys) {
            violations.add(Invariant::StoredOnce, &partition.key, format!("the subscription {id} is stored as {keys}"));
        }
        let payments = partition.receipts.iter().map(|receipt| (receipt.payment.to_string(), receipt.id()));
        for (payment, receipts) in find_repeated_names(payments) {
            let what = format!("the payment {payment} has several receipts: {receipts}");
            violations.add(Invariant::StoredOnce, &partition.key, what);
        }
    }

    /// Returns a description of the violation if the record has an impossible expiry or exists long after its expiry.
    fn expiry_violation(&self, expiry: &RecordExpiry) -> Option<String> {
        let Some(at) = DateTime::from_timestamp(expiry.expires, 0) else {
            return Some("its TTL is impossible".to_owned());
        };
        if at <= expiry.recorded_at || at > expiry.recorded_at + MAX_RETENTION + TimeDelta::days(1) {
            return Some(format!("it was recorded at {}, but expires at {at}", expiry.recorded_at));
        }
        (at + MAX_DELETION_DELAY < self.now).then(|| format!("it expired at {at}, but still exists"))
    }

    /// Adds a violation for each contradiction between the attributes of `s`, and between `s` and the records of its
    /// account.
    pub(super) fn check_attributes(
        &self,
        s: &Subscription,
        partition: &AccountPartition,
        violations: &mut AccountViolations,
    ) {
        let key = SubscriptionKey::from_subscription(s).key();
        let of_subscription = |receipt: &&Receipt| receipt.subscription == s.id;
        let receipts: Vec<&Receipt> = partition.receipts.iter().filter(of_subscription).collect();
        let attempts: Vec<&AttemptRecord> =
            partition.attempts.iter().filter(|attempt| attempt.subscription == s.id).collect();
        let mut all = self.date_contradictions(s);
        all.extend(self.status_contradictions(s, &attempts));
        all.extend(reminder_contradiction(s, self.lead, self.today));
        // If an item of the account cannot be read, it may be a record that seems to be missing, so skip the comparison
        // with the records.
        if partition.unreadable.is_empty() {
            all.extend(self.record_contradictions(s, &receipts, &attempts));
        }
        all.into_iter().for_each(|what| violations.add(Invariant::Consistent, &key, what));
        if let Some(contradiction) = s.attempt.as_ref().and_then(|attempt| attempt_contradiction(s, attempt)) {
            violations.add(Invariant::AttemptMatches, &key, contradiction.to_string());
        }
    }

    /// Returns the contradictions between the dates of `s`.
    fn date_contradictions(&self, s: &Subscription) -> Vec<String> {
        let Subscription { due_on, payment_day, first_due_on, waiting_terms, .. } = s;
        let month = s.due_period();
        let mut all = Vec::new();
        if *due_on != payment_day.due_in(month) {
            all.push(format!("the due date {due_on} is not the payment day {payment_day} of its month"));
        }
        if due_on < first_due_on {
            all.push(format!("the due date {due_on} is before the first due date {first_due_on}"));
        }
        if s.is_due_month_paid() {
            all.push(format!("the month {month} is due, although ChargeableFrom says that it is paid"));
        }
        if let Some(terms) = waiting_terms.iter().find(|terms| terms.from <= month) {
            all.push(format!("terms from {} wait, although the month {month} is due", terms.from));
        }
        if !waiting_terms.is_sorted_by(|a, b| a.from < b.from) {
            all.push("the waiting terms are not in the order of their months".to_owned());
        }
        if let Some(claim) = s.reminder_claim.filter(|claim| self.present().is_lease_too_late(claim.leased_until)) {
            all.push(format!(
                "the reminder is claimed until {}: the clock of the worker was ahead",
                claim.leased_until
            ));
        }
        all
    }

    /// Returns the contradictions between the status of `s`, its other attributes, and the attempt records `attempts`.
    fn status_contradictions(&self, s: &Subscription, attempts: &[&AttemptRecord]) -> Vec<String> {
        let Subscription { status, due_on, cancel_from, unpaid_since, failed_attempts, first_declined_on, .. } = s;
        let month = s.due_period();
        let mut all = Vec::new();
        match (status, cancel_from) {
            (SubscriptionStatus::Cancelled, None) => all.push("it is cancelled, but has no CancelPeriod".to_owned()),
            (SubscriptionStatus::Cancelled, Some(from)) if s.attempt.is_none() && *from != month => {
                all.push(format!("it was cancelled from {from}, but {month} is due next"));
            }
            (SubscriptionStatus::Cancelled, _) => {}
            (_, Some(from)) if *from < month => {
                all.push(format!("it should have been cancelled before {from}, but {month} is due"));
            }
            _ => {}
        }
        if matches!(status, SubscriptionStatus::Active | SubscriptionStatus::Paused) {
            if let Some(since) = unpaid_since {
                all.push(format!("it is {status}, but has been unpaid since {since}"));
            }
            if *failed_attempts > 0 {
                all.push(format!("it is {status}, but has {failed_attempts} failed attempts"));
            }
            if let Some(on) = first_declined_on {
                all.push(format!("it is {status}, but its payment was declined on {on}"));
            }
        }
        if *status == SubscriptionStatus::Unpaid && unpaid_since.is_none() {
            all.push("it is unpaid, but has no UnpaidSince".to_owned());
        }
        if let Some(on) = first_declined_on.filter(|on| on < due_on) {
            all.push(format!("its payment of {due_on} cannot have been declined first on {on}"));
        }
        if s.rejections > 0 && s.rejected_customer.is_none() {
            all.push(format!("{} attempts were rejected, but no customer is stored", s.rejections));
        }
        if let Some(no) = attempts.iter().map(|attempt| attempt.attempt_no).max().filter(|no| *no > s.attempt_seq) {
            all.push(format!("attempt {no} is recorded, but the latest attempt has the number {}", s.attempt_seq));
        }
        all
    }

    /// Returns the contradictions between `s` and its receipts and attempt records. Ignores records that may have
    /// expired.
    fn record_contradictions(
        &self,
        s: &Subscription,
        receipts: &[&Receipt],
        attempts: &[&AttemptRecord],
    ) -> Vec<String> {
        let mut all = self.last_payment_contradictions(s, receipts);
        all.extend(chargeable_from_contradiction(s, receipts));
        all.extend(attempt_count_contradiction(s, receipts, attempts));
        all.extend(early_payment_contradictions(receipts, attempts));
        all.extend(receipts.iter().flat_map(|receipt| receipt_contradictions(s, receipt)));
        all.extend(self.decline_contradiction(s, attempts));
        all
    }

    /// Returns the contradictions between the time of the last payment of `s` and its receipts.
    fn last_payment_contradictions(&self, s: &Subscription, receipts: &[&Receipt]) -> Vec<String> {
        let mut all = Vec::new();
        let newest = receipts.iter().map(|receipt| receipt.processed_at).max();
        // A receipt in the future was written while a clock was ahead, and a later payment has the right time.
        let past = receipts.iter().map(|receipt| receipt.processed_at).filter(|at| !self.present().is_in_future(*at));
        if let Some(newest) = past.max().filter(|newest| s.last_payment_at.is_none_or(|at| at < *newest)) {
            all.push(format!("the newest receipt is of {newest}, but the last payment of {:?}", s.last_payment_at));
        }
        let is_recorded = |at: DateTime<Utc>| at > self.now - self.records_kept + TimeDelta::days(1);
        if let Some(at) = s.last_payment_at.filter(|at| is_recorded(*at) && newest.is_none_or(|newest| newest < *at)) {
            all.push(format!("the last payment was at {at}, but has no receipt"));
        }
        all
    }

    /// Returns the contradiction between the status of `s` and the recorded declines of its due month.
    fn decline_contradiction(&self, s: &Subscription, attempts: &[&AttemptRecord]) -> Option<String> {
        let has_decline = attempts.iter().any(|attempt| attempt.due_on == s.due_on && attempt.is_decline);
        if s.status == SubscriptionStatus::Active && has_decline {
            return Some(format!("a declined attempt of {} is recorded, but the subscription is active", s.due_on));
        }
        let is_recent = s.first_declined_on.is_some_and(|on| {
            let kept_from = (self.now - self.records_kept).date_naive();
            on > days_after(kept_from, 1)
        });
        let is_decline_missing = s.status == SubscriptionStatus::PastDue
            && !has_decline
            && s.unpaid_since.is_none()
            && (is_recent || s.first_declined_on.is_none());
        is_decline_missing.then(|| format!("it is past due, but no declined attempt of {} is recorded", s.due_on))
    }
}

/// Returns the contradiction if the next chargeable month of `s` is not the month after the last paid month.
fn chargeable_from_contradiction(s: &Subscription, receipts: &[&Receipt]) -> Option<String> {
    // If an earlier version of Dueday made the last payment, the subscription has no `ChargeableFrom`, so only compare
    // an existing value.
    let after_paid = receipts.iter().map(|receipt| receipt.period().next()).max();
    let (from, after_paid) = s.chargeable_from.zip(after_paid).filter(|(from, after)| from != after)?;
    Some(format!("ChargeableFrom is {from}, but should be {after_paid}"))
}

/// Returns the contradiction if the table contains more attempts than the number of the latest attempt of `s`.
fn attempt_count_contradiction(s: &Subscription, receipts: &[&Receipt], attempts: &[&AttemptRecord]) -> Option<String> {
    // Count the attempts in the table: a paid attempt has a receipt, an unsuccessful attempt has an attempt record, and
    // an attempt without an outcome is open. If the gateway makes the payment of an attempt after the attempt was
    // recorded as rejected, the attempt has both a record and a receipt. So do not count a receipt if its month has a
    // record.
    let is_only_receipt = |receipt: &&&Receipt| attempts.iter().all(|attempt| attempt.due_on != receipt.due_on);
    let only_receipts = receipts.iter().filter(is_only_receipt).count();
    let known_attempts = only_receipts + attempts.len() + usize::from(s.attempt.is_some());
    u32::try_from(known_attempts)
        .is_ok_and(|known| known > s.attempt_seq)
        .then(|| format!("{known_attempts} attempts are known, but the latest has the number {}", s.attempt_seq))
}

/// Returns a contradiction for each payment that was processed long before it was due.
fn early_payment_contradictions(receipts: &[&Receipt], attempts: &[&AttemptRecord]) -> Vec<String> {
    let recorded = receipts.iter().map(|receipt| (receipt.due_on, receipt.processed_at));
    let recorded = recorded.chain(attempts.iter().map(|attempt| (attempt.due_on, attempt.processed_at)));
    let early = recorded.filter(|(due_on, at)| days_after(at.date_naive(), 2) < *due_on);
    early.map(|(due_on, at)| format!("the payment of {due_on} was processed at {at}, before it was due")).collect()
}

/// Returns the contradictions between `receipt` and its subscription `s`, and between the attributes of `receipt`.
fn receipt_contradictions(s: &Subscription, receipt: &Receipt) -> Vec<String> {
    let mut all = Vec::new();
    if receipt.period() < Period::from_day(s.first_due_on) {
        all.push(format!("{} is paid, but the first due date is {}", receipt.due_on, s.first_due_on));
    }
    if receipt.amount.currency() != s.price.currency() {
        all.push(format!("{} was paid in {}", receipt.due_on, receipt.amount.currency()));
    }
    if receipt.amount.minor() <= 0 {
        all.push(format!("the receipt of {} has an impossible amount: {}", receipt.due_on, receipt.amount));
    }
    if receipt.refunded.minor() > 0 && receipt.refunded_at.is_none() {
        all.push(format!("the receipt of {} has a refund without a time", receipt.due_on));
    }
    all
}

/// Returns a description of the contradiction if the reminder for the due date of `s` is not planned although it should
/// be, or is planned too late.
fn reminder_contradiction(s: &Subscription, lead: LeadDays, today: NaiveDate) -> Option<String> {
    let is_planned =
        s.status == SubscriptionStatus::Active && s.attempt.is_none() && !s.is_ending() && s.due_on > today;
    match s.next_reminder_on {
        Some(on) if on > lead.date_before(s.due_on) => {
            Some(format!("the reminder is planned for {on}, too late for the due date {}", s.due_on))
        }
        None if is_planned && s.reminded_for != Some(s.due_on) => {
            Some(format!("no reminder of the due date {} is planned or was sent", s.due_on))
        }
        _ => None,
    }
}

/// Returns each name that occurs more than once, with a list of the places where it occurs.
fn find_repeated_names<P: std::fmt::Display>(all: impl Iterator<Item = (String, P)>) -> Vec<(String, String)> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, place) in all {
        places.entry(name).or_default().push(place.to_string());
    }
    let repeated = places.into_iter().filter(|(_, places)| places.len() > 1);
    repeated.map(|(name, places)| (name, places.join(" and "))).collect()
}

/// Describes the contradiction between `receipt` and a refund or dispute that belongs to it: `payment` is not the
/// payment of the receipt, or `amount` has another currency. Returns `None` if there is no contradiction.
pub(super) fn contradiction_with_receipt(receipt: &Receipt, payment: &str, amount: Money) -> Option<String> {
    if payment != receipt.payment.as_str() {
        return Some(format!("it names the payment {payment}, but the receipt is of {}", receipt.payment));
    }
    (amount.currency() != receipt.amount.currency()).then(|| format!("its currency is {}", amount.currency()))
}
