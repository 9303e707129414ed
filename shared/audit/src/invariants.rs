//! Whether a table holds its invariants: what is owed is paid, waived or owed still, and what is to be charged will be
//! found. Judged from one account's items at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;
use strum::{Display, EnumIter, IntoStaticStr};

use billing::{Finding, Period, Receipt, Refund, RefundStatus, Reversal, Status, Subscription, days_after};
use store::{Partition, SubscriptionKey};

/// Clocks may differ by this much.
pub(super) const CLOCKS_DIFFER: TimeDelta = TimeDelta::minutes(10);

/// A refund takes no longer at a bank ("Refund and cancel payments" in Stripe's documentation: 5 to 10 business days).
const PENDING_AT_MOST: TimeDelta = TimeDelta::days(14);

/// What must hold of every table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Display, EnumIter, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Invariant {
    /// Every item can be read.
    Readable,
    /// Every month since the first due date is paid, waived or owed: exactly one of them.
    MonthAccountedFor,
    /// No month is paid twice.
    PaidOnce,
    /// What is to be charged, and what is open, is in the payment index; what is stopped is in no index.
    Indexed,
    /// Every shard is one that the sweeps walk.
    ShardSwept,
    /// No date lies further ahead than it can, and no payment is planned before its due date or long after it.
    DatesNear,
    /// What a run has left in a shard, a later run has walked to its end.
    RunsFinished,
    /// Every record is of a subscription that is there, and every subscription of an account.
    Owned,
    /// Every receipt states a payment that the gateway has made, and every payment has its receipt.
    Receipted,
    /// What a receipt says is given back is what its refunds come to, no more than was paid, and none of them is pending for long. The
    /// gateway has made the same refunds.
    Refunded,
    /// Every successful payment without a receipt is resolved by a person, and a subscription is kept from being charged exactly while
    /// one is not.
    Resolved,
    /// A payment method is charged unless a dispute stops it or a person decided otherwise, and a receipt shows what lost disputes
    /// took back. The gateway has the same disputes.
    Disputed,
    /// The gateway lists the payments of every customer, and its refunds and disputes.
    Listed,
}

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Broken {
    pub invariant: Invariant,
    /// The item.
    pub key: String,
    pub what: String,
}

/// By what a table is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    pub shards: u32,
    pub today: NaiveDate,
    pub now: DateTime<Utc>,
    /// How long records are kept: months that fell due before that cannot be judged.
    pub records_kept: TimeDelta,
    /// The days from a due date to the last retry of its payment, by the retry schedule.
    pub retry_days: u32,
    /// The longest that an attempt may be leased.
    pub lease: TimeDelta,
}

/// What is broken so far, of one account.
#[derive(Default)]
pub(super) struct Findings {
    pub broken: Vec<Broken>,
}

impl Findings {
    pub fn add(&mut self, invariant: Invariant, key: impl Display, what: impl Into<String>) {
        self.broken.push(Broken { invariant, key: key.to_string(), what: what.into() });
    }
}

impl Judge {
    /// What does not hold of `partition`.
    pub fn judge(&self, partition: &Partition) -> Vec<Broken> {
        let mut findings = Findings { broken: Vec::new() };
        for error in &partition.unreadable {
            findings.add(Invariant::Readable, &partition.key, error.to_string());
        }
        if partition.account.is_none() && !partition.subscriptions.is_empty() {
            findings.add(Invariant::Owned, &partition.key, "it has subscriptions, and there is no such account");
        }
        self.owners(partition, &mut findings);
        self.refunds(partition, &mut findings);
        self.disputes(partition, &mut findings);
        unresolved(partition, &mut findings);
        for subscription in &partition.subscriptions {
            let key = SubscriptionKey::of(subscription).key();
            self.months(subscription, partition, &mut findings);
            if let Some(what) = unindexed(subscription) {
                findings.add(Invariant::Indexed, &key, what);
            }
            if subscription.shard >= self.shards {
                let (shard, shards) = (subscription.shard, self.shards);
                findings.add(
                    Invariant::ShardSwept,
                    &key,
                    format!("it is in shard {shard}, and there are {shards}, from 0"),
                );
            }
            for what in self.far_dates(subscription) {
                findings.add(Invariant::DatesNear, &key, what);
            }
        }
        findings.broken
    }

    fn refunds(&self, partition: &Partition, findings: &mut Findings) {
        // An item that cannot be read may be one of them.
        if !partition.unreadable.is_empty() {
            return;
        }
        for receipt in &partition.receipts {
            let id = receipt.id();
            let of_it = partition.refunds.iter().filter(|refund| refund.receipt == id);
            let counted = of_it.filter(|refund| refund.status != RefundStatus::Failed);
            let sum: i128 = counted.map(|refund| i128::from(refund.amount.minor())).sum();
            let (said, paid) = (receipt.refunded, receipt.amount);
            if sum != i128::from(said.minor()) || said.minor() > paid.minor() {
                let what =
                    format!("of {paid} it says that {said} is given back, and its refunds are {sum} minor units");
                findings.add(Invariant::Refunded, format!("{} {id}", partition.key), what);
            }
        }
        let is_old = |refund: &&Refund| self.now.signed_duration_since(refund.created_at) > PENDING_AT_MOST;
        let pending = partition.refunds.iter().filter(|refund| refund.status == RefundStatus::Pending);
        for refund in pending.filter(is_old) {
            let key = format!("{} {}", partition.key, refund.receipt);
            let what = format!("the refund {} is pending; ask for it again", refund.id);
            findings.add(Invariant::Refunded, key, what);
        }
    }

    fn disputes(&self, partition: &Partition, findings: &mut Findings) {
        // An item that cannot be read may be one of them.
        if !partition.unreadable.is_empty() {
            return;
        }
        for subscription in &partition.subscriptions {
            let marked = subscription.disputed_by(&partition.disputes);
            if marked.disputed_at.is_some() != subscription.disputed_at.is_some() {
                let what = match marked.disputed_at {
                    Some(since) => format!("its payment method is disputed since {since}, and is charged"),
                    None => "its payment method is not charged, and no dispute says why".to_owned(),
                };
                findings.add(Invariant::Disputed, SubscriptionKey::of(subscription).key(), what);
            }
        }
        for receipt in &partition.receipts {
            let reversal = receipt.reversed_by(&partition.disputes);
            if reversal.map(|reversal| reversal.amount) != receipt.reversal.map(|reversal| reversal.amount) {
                let what = match reversal {
                    Some(Reversal { amount, .. }) => {
                        format!(
                            "the bank took {amount} back, and the receipt does not say so: let the gateway send the event again"
                        )
                    }
                    None => "the receipt says that the bank took the payment back, and no dispute says so".to_owned(),
                };
                findings.add(Invariant::Disputed, format!("{} {}", partition.key, receipt.id()), what);
            }
        }
    }

    fn owners(&self, partition: &Partition, findings: &mut Findings) {
        let known: BTreeSet<_> = partition.subscriptions.iter().map(|subscription| subscription.id).collect();
        // An item that cannot be read may be the one.
        if !partition.unreadable.is_empty() {
            return;
        }
        let receipts = partition.receipts.iter().map(|receipt| (receipt.subscription, receipt.due_on, "receipt"));
        let waived = partition.waived.iter().map(|waived| (waived.subscription, waived.due_on, "waived month"));
        let attempts = partition.attempts.iter().map(|attempt| (attempt.subscription, attempt.due_on, "attempt"));
        let disputes =
            partition.disputes.iter().map(|dispute| (dispute.receipt.subscription, dispute.receipt.due_on, "dispute"));
        let all = receipts.chain(waived).chain(attempts).chain(disputes);
        for (id, due_on, what) in all.filter(|(id, ..)| !known.contains(id)) {
            findings.add(Invariant::Owned, &partition.key, format!("a {what} of {due_on} is of no subscription {id}"));
        }
    }

    /// Each month is exactly one of paid, waived and owed, as far as records are kept.
    fn months(&self, subscription: &Subscription, partition: &Partition, findings: &mut Findings) {
        let key = SubscriptionKey::of(subscription).key();
        let of_it = |receipt: &&Receipt| receipt.subscription == subscription.id;
        let mut paid: BTreeMap<Period, u32> = BTreeMap::new();
        for receipt in partition.receipts.iter().filter(of_it) {
            *paid.entry(Period::of(receipt.due_on)).or_default() += 1;
        }
        let waived = partition.waived.iter().filter(|waived| waived.subscription == subscription.id);
        let waived: BTreeSet<Period> = waived.map(|waived| Period::of(waived.due_on)).collect();
        for (month, times) in &paid {
            if *times > 1 {
                findings.add(Invariant::PaidOnce, &key, format!("{month} has {times} receipts"));
            }
            if waived.contains(month) {
                findings.add(Invariant::MonthAccountedFor, &key, format!("{month} is paid, and waived too"));
            }
        }
        let owed_from = Period::of(subscription.due_on);
        for month in paid.keys().chain(&waived).filter(|month| **month >= owed_from) {
            findings.add(Invariant::MonthAccountedFor, &key, format!("{month} is paid or waived, and owed still"));
        }
        let recorded_from = self.today.checked_sub_signed(self.records_kept).map_or(owed_from, Period::of).next();
        let first = Period::of(subscription.first_due_on).max(recorded_from);
        let months = std::iter::successors(Some(first), |month| Some(month.next()));
        for month in months.take_while(|month| *month < owed_from) {
            if !paid.contains_key(&month) && !waived.contains(&month) {
                findings.add(
                    Invariant::MonthAccountedFor,
                    &key,
                    format!("{month} is neither paid nor waived nor owed"),
                );
            }
        }
    }

    fn far_dates(&self, subscription: &Subscription) -> Vec<String> {
        let mut far = Vec::new();
        let next_month = Period::of(self.today).next();
        let Subscription { due_on, first_due_on, next_payment_on, .. } = subscription;
        if Period::of(*due_on) > next_month && due_on > first_due_on {
            far.push(format!(
                "it is due on {due_on}, and what came before that can only have been due by {next_month}"
            ));
        }
        // Retries of a payment that an outage has delayed count from the day of the try, which was today at the latest.
        let latest = days_after((*due_on).max(self.today), self.retry_days);
        if let Some(on) = next_payment_on.filter(|on| on < due_on || *on > latest) {
            far.push(format!("it is to be charged on {on}, and is due on {due_on}"));
        }
        if let Some(attempt) = &subscription.attempt {
            let (until, at) = (attempt.leased_until, attempt.claimed_at);
            if until > self.now + self.lease + CLOCKS_DIFFER || at > self.now + CLOCKS_DIFFER {
                far.push(format!("an attempt was claimed at {at} until {until}, by a clock that is ahead"));
            }
        }
        if let Some(at) = subscription.last_payment_at.filter(|at| *at > self.now + CLOCKS_DIFFER) {
            far.push(format!("it was last paid at {at}, by a clock that is ahead"));
        }
        far
    }
}

/// Open findings of `partition`, and subscriptions that do not count them as they should.
fn unresolved(partition: &Partition, findings: &mut Findings) {
    let open: Vec<&Finding> = partition.findings.iter().filter(|finding| finding.resolved.is_none()).collect();
    for finding in &open {
        let key = format!("{} {} {}", partition.key, finding.due_on, finding.subscription);
        let what = format!("{} of {}: {}", finding.payment, finding.amount, finding.reason.sentence());
        findings.add(Invariant::Resolved, key, what);
    }
    // An item that cannot be read may be one of them.
    if !partition.unreadable.is_empty() {
        return;
    }
    for subscription in &partition.subscriptions {
        let blocking = open.iter().filter(|finding| finding.subscription == subscription.id && finding.blocks).count();
        if usize::try_from(subscription.open_findings) != Ok(blocking) {
            let what =
                format!("it counts {} findings that block it, and there are {blocking}", subscription.open_findings);
            findings.add(Invariant::Resolved, SubscriptionKey::of(subscription).key(), what);
        }
    }
}

/// Why a subscription is not in the indexes as it should be.
fn unindexed(subscription: &Subscription) -> Option<String> {
    let Subscription { status, attempt, next_payment_on, next_reminder_on, .. } = subscription;
    match (status.is_chargeable(), attempt, next_payment_on) {
        (_, Some(_), None) => Some("a payment is open, and no run will find it".to_owned()),
        (true, None, None) => Some(format!("it is {status}, and no run will find it")),
        (false, None, Some(on)) => Some(format!("it is {status}, and in the payment index on {on}")),
        _ if *status != Status::Active && next_reminder_on.is_some() => {
            Some(format!("it is {status}, and in the reminder index"))
        }
        _ => None,
    }
}
