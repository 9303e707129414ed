//! The oracle: the part of the simulator that knows the correct results. It predicts the stored state of each
//! subscription from the reports of the simulation, with its own rules and its own calendar.
//!
//! The simulation reports to the oracle each write to the table (with the item before and after the write), each charge
//! at the gateway, each mail, each API response and each completed run, in the order in which they took effect. After
//! each report, the oracle predicts the stored state. Every difference between the prediction and the table is a
//! violation.

mod actors;
mod clock_repair;
mod customer_actions;
mod expected_subscription;
mod late_payments;
mod ledger;
mod payments;
mod reminders;
mod rules;
mod runs;
mod settlements;
mod terms;
mod written_records;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;

use crate::calendar::month_of;
use crate::change::{ItemChange, ItemKey};
use crate::json::read_text_attribute;
use crate::schedule::ActorId;
use crate::stored_items::{StoredStatus, SubscriptionName, display_name};

use actors::ActorState;
pub use actors::{ActorRole, RequestOutcome, SimulatedActor};
pub use expected_subscription::{CustomerAction, ExpectedSubscription};
use ledger::PaymentLedger;
pub use rules::BillingRules;
pub use runs::CompletedRun;

/// The maximum time for which a batch run works on one row, including the time for which it is frozen.
const MAX_ROW_TIME: TimeDelta = TimeDelta::hours(3);

/// The numbers of the writes, charges, mails and requests that the oracle checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OracleCounts {
    /// The number of writes to subscriptions and their records.
    pub writes: u64,
    /// The number of charge requests to the gateway.
    pub charges: u64,
    /// The number of reminder mails that were sent.
    pub mails: u64,
    /// The number of customer requests that were accepted.
    pub accepted_requests: u64,
    /// The number of customer requests that were refused.
    pub refused_requests: u64,
    /// The number of late payments, which the gateway made hours after an error response.
    pub late_payments: u64,
    /// The number of late payments that no look-up could find before a later attempt charged the month.
    pub late_duplicates: u64,
    /// The number of receipts that were written because of an event of the gateway.
    pub receipts_by_event: u64,
    /// The number of findings: successful payments without a receipt that an operator must resolve.
    pub findings: u64,
}

/// The oracle of one simulation.
pub struct Oracle {
    rules: BillingRules,
    zone: Tz,
    /// The expected state of each subscription, except for the subscriptions of corrupted accounts.
    expected_subscriptions: BTreeMap<SubscriptionName, ExpectedSubscription>,
    /// The last expected states of the subscriptions whose account was corrupted. The oracle no longer predicts the
    /// states of these subscriptions, and checks only that no month is charged twice.
    unpredictable_subscriptions: BTreeMap<SubscriptionName, ExpectedSubscription>,
    /// The accounts of which an item was corrupted.
    corrupted_accounts: BTreeSet<String>,
    /// The actors that have not finished.
    active_actors: BTreeMap<ActorId, ActorState>,
    /// All payments that the gateway has made.
    ledger: PaymentLedger,
    pub counts: OracleCounts,
    /// The violations, in the order in which they were found.
    pub violations: Vec<String>,
}

/// A write to an existing subscription, with the other items that the same request wrote.
struct SubscriptionWrite<'a> {
    /// The item of the subscription before the write.
    before: Option<&'a serde_json::Value>,
    /// The item of the subscription after the write.
    after: &'a serde_json::Value,
    /// The payment records, waivers and findings of the same request.
    records: &'a written_records::WrittenRecords,
}

impl Oracle {
    /// Creates the oracle of a deployment with these settings and this billing time zone.
    pub fn new(rules: BillingRules, zone: Tz) -> Self {
        Self {
            rules,
            zone,
            expected_subscriptions: BTreeMap::new(),
            unpredictable_subscriptions: BTreeMap::new(),
            corrupted_accounts: BTreeSet::new(),
            active_actors: BTreeMap::new(),
            ledger: PaymentLedger::default(),
            counts: OracleCounts::default(),
            violations: Vec::new(),
        }
    }

    /// Returns the number of subscriptions of `account` to the product of the sign-up `new` that are not cancelled.
    pub fn active_subscriptions_of(&self, account: &str, new: &serde_json::Value) -> usize {
        let is_same = |subscription: &&ExpectedSubscription| {
            subscription.name.0 == account
                && subscription.status != StoredStatus::Cancelled
                && new["product_name"] == subscription.product.as_str()
        };
        self.expected_subscriptions().filter(is_same).count()
    }

    /// Returns the names of the cancelled subscriptions.
    pub fn cancelled_subscriptions(&self) -> Vec<SubscriptionName> {
        let cancelled = self.expected_subscriptions().filter(|expected| expected.status == StoredStatus::Cancelled);
        cancelled.map(|expected| expected.name.clone()).collect()
    }

    /// Returns the current expected state of each subscription. For a subscription of a corrupted account, this is the
    /// state before the corruption.
    pub fn expected_subscriptions(&self) -> impl Iterator<Item = &ExpectedSubscription> {
        self.expected_subscriptions.values().chain(self.unpredictable_subscriptions.values())
    }

    /// Records that an item of `account` was corrupted. From now on, the only violation that the oracle reports for
    /// this account is a month that is charged twice.
    pub fn record_corrupted_account(&mut self, account: &str) {
        self.corrupted_accounts.insert(account.to_owned());
        let corrupted = self.expected_subscriptions.extract_if(.., |name, _| name.0 == account);
        self.unpredictable_subscriptions.extend(corrupted);
    }

    /// Returns whether an item of `account` was corrupted.
    pub fn is_account_corrupted(&self, account: &str) -> bool {
        self.corrupted_accounts.contains(account)
    }

    /// Checks a table request of actor `id` that took effect at `now`. `changes` contains the items that the request
    /// wrote; a request without changes is a read.
    pub fn record_table_request(&mut self, id: ActorId, now: DateTime<Utc>, changes: &[ItemChange]) {
        let mut changed = BTreeSet::new();
        for change in changes {
            changed.extend(
                subscription_of_item_key(&change.key).filter(|(account, _)| !self.is_account_corrupted(account)),
            );
        }
        for subscription in &changed {
            self.counts.writes += 1;
            self.check_write(id, now, subscription, changes);
        }
        // Only a read updates the actor's record of whether its action is allowed. A write does not: the last write of
        // an API request may be its idempotency record, whose contents follow from earlier reads.
        if changes.is_empty() {
            self.record_whether_action_is_allowed(id);
        }
    }

    /// Checks all changes of one request that concern `subscription`.
    fn check_write(
        &mut self,
        id: ActorId,
        now: DateTime<Utc>,
        subscription: &SubscriptionName,
        changes: &[ItemChange],
    ) {
        let is_of_subscription =
            |change: &&ItemChange| subscription_of_item_key(&change.key).as_ref() == Some(subscription);
        let written: Vec<&ItemChange> = changes.iter().filter(is_of_subscription).collect();
        let item = written.iter().find(|change| change.key.1.starts_with("SUB#"));
        let records = written_records::WrittenRecords::from_changes(&written);
        if item.is_none() && records.has_only_findings() {
            return self.record_findings(now, subscription, &records);
        }
        let Some(after) = item.and_then(|change| change.after.as_ref()) else {
            return self.report_violation(
                now,
                subscription,
                "a receipt, an attempt record or a waiver was written without the subscription".to_owned(),
            );
        };
        let Some(expected) = self.expected_subscriptions.get(subscription).cloned() else {
            return self.check_new_subscription(id, now, subscription, after);
        };
        let before = item.and_then(|change| change.before.as_ref());
        match self.check_transition(id, now, expected, &SubscriptionWrite { before, after, records: &records }) {
            Ok(expected) => drop(self.expected_subscriptions.insert(subscription.clone(), expected)),
            Err(reason) => self.report_violation(now, subscription, reason),
        }
        if let Some(active) = self.active_actors.get_mut(&id) {
            active.has_written = true;
        }
    }

    /// Checks and records a new subscription. Its first due date must be the first payment day after today.
    fn check_new_subscription(
        &mut self,
        id: ActorId,
        now: DateTime<Utc>,
        subscription: &SubscriptionName,
        item: &serde_json::Value,
    ) {
        let Some(first) = ExpectedSubscription::from_item(subscription, item) else {
            return self.report_violation(now, subscription, "the item of the subscription cannot be read".to_owned());
        };
        let today = self.active_actors.get(&id).map(|active| active.actor.today);
        if let Some(expected) = today.map(|today| first.first_payment_date_after(today)).filter(|due| *due != first.due)
        {
            self.report_violation(
                now,
                subscription,
                format!("the first due date should be {expected}, but is {}", first.due),
            );
        }
        // A request may be frozen between the time in the item and the write.
        let first = ExpectedSubscription { changed_at: now, ..first };
        self.expected_subscriptions.insert(subscription.clone(), first);
    }

    /// Checks a write to an existing subscription, and returns the expected subscription after the write.
    ///
    /// # Errors
    /// The violation, if the write is not allowed or the stored item differs from the prediction.
    fn check_transition(
        &mut self,
        id: ActorId,
        now: DateTime<Utc>,
        expected: ExpectedSubscription,
        write: &SubscriptionWrite<'_>,
    ) -> Result<ExpectedSubscription, String> {
        let actor = self.active_actors.get(&id).map(|active| active.actor.clone());
        let actor = actor.ok_or("the write belongs to no active actor")?;
        let predictions = self.possible_days_of_write(&actor, now).into_iter().map(|today| {
            let predicted = self.predict_subscription(id, &actor, now, today, expected.clone(), write)?;
            let mut differences = predicted.find_differences(write.after);
            differences.extend(predicted.waiver_difference(write.records));
            if differences.is_empty() { Ok(predicted) } else { Err(differences.join("; ")) }
        });
        let mut expected = predictions
            .reduce(|first, other| first.or(other))
            .unwrap_or(Err("no day is possible for the write".to_owned()))?;
        for (due, reason) in std::mem::take(&mut expected.new_waivers) {
            expected.waived.insert(month_of(due), reason.to_owned());
        }
        if actor.role == ActorRole::Webhook {
            self.counts.receipts_by_event += write.records.receipts.len() as u64;
        }
        for receipt in &write.records.receipts {
            if !self.ledger.receipted.insert(receipt.payment.clone()) {
                return Err(format!("the payment {} has two receipts", receipt.payment));
            }
        }
        Ok(ExpectedSubscription { changed_at: now, ..expected })
    }

    /// Returns the days on which the actor may have begun this write: yesterday and today, if the write may have begun
    /// before midnight, otherwise only today.
    fn possible_days_of_write(&self, actor: &SimulatedActor, now: DateTime<Utc>) -> Vec<NaiveDate> {
        if matches!(actor.role, ActorRole::Request { .. }) {
            return vec![actor.today];
        }
        let mut days: Vec<NaiveDate> = [now, now - MAX_ROW_TIME].map(|at| self.local_time_of_actor(actor, at).1).into();
        days.dedup();
        days
    }

    /// Returns the expected subscription after a write of `actor` on the day `today`.
    ///
    /// # Errors
    /// The violation, if the actor must not make this write.
    fn predict_subscription(
        &self,
        id: ActorId,
        actor: &SimulatedActor,
        now: DateTime<Utc>,
        today: NaiveDate,
        expected: ExpectedSubscription,
        write: &SubscriptionWrite<'_>,
    ) -> Result<ExpectedSubscription, String> {
        match &actor.role {
            ActorRole::Request { action, .. } => {
                if !write.records.is_empty() && !write.records.has_only_waivers() {
                    return Err(format!("{action:?} wrote a receipt or an attempt record"));
                }
                expected
                    .predict_after_action(action, today, &self.rules)
                    .ok_or_else(|| format!("{action:?} was done, but had to be refused"))
            }
            ActorRole::Payments | ActorRole::Resolver | ActorRole::Webhook => {
                self.predict_after_payment_write(id, actor, now, today, expected, write)
            }
            ActorRole::Reminders => {
                let local_now = now + actor.skew;
                reminders::predict_after_reminder_write(id, local_now, today, expected, write.before, write.after)
            }
            ActorRole::Operator => Err("an operator task wrote to the subscription".to_owned()),
        }
    }

    /// Returns the instant and the day that the actor's clock shows at `now`.
    fn local_time_of_actor(&self, actor: &SimulatedActor, now: DateTime<Utc>) -> (DateTime<Utc>, NaiveDate) {
        let local_now = now + actor.skew;
        (local_now, local_now.with_timezone(&self.zone).date_naive())
    }

    /// Reports a violation of a rule, unless the account of `subscription` was corrupted.
    fn report_violation(&mut self, now: DateTime<Utc>, subscription: &SubscriptionName, reason: String) {
        if !self.is_account_corrupted(&subscription.0) {
            self.report_second_charge(now, subscription, reason);
        }
    }

    /// Reports that a month was charged twice, which must never happen, even to a corrupted account.
    fn report_second_charge(&mut self, now: DateTime<Utc>, subscription: &SubscriptionName, reason: String) {
        self.violations.push(format!("{} {}: {reason}", now.format("%Y-%m-%d %H:%M:%S"), display_name(subscription)));
    }
}

/// Returns the subscription to which the item with this key belongs; `None` if it belongs to no subscription.
fn subscription_of_item_key((pk, sk): &ItemKey) -> Option<SubscriptionName> {
    let account = pk.strip_prefix("ACC#")?;
    let parts: Vec<&str> = sk.split('#').collect();
    let position = match *parts.first()? {
        "SUB" => 1,
        "REC" => 5,
        "ATT" | "WAV" | "FND" => 3,
        _ => return None,
    };
    Some((account.to_owned(), (*parts.get(position)?).to_owned()))
}

/// Returns the status in the item of a subscription; `None` if the status is missing or invalid.
fn subscription_status_in_item(item: &serde_json::Value) -> Option<crate::stored_items::StoredStatus> {
    crate::stored_items::StoredStatus::parse(read_text_attribute(item, "Status")?)
}

#[cfg(test)]
mod late_payments_tests;
#[cfg(test)]
mod tests;
