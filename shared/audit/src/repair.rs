//! Repairs damaged index attributes of subscriptions, and times that a worker wrote while its clock was ahead. The index
//! attributes are the dates by which the batches find a subscription. The correct dates follow from the other attributes
//! of the subscription.

use billing::{Subscription, SubscriptionStatus, days_after};
use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use store::{AccountPartition, SubscriptionKey};

use super::invariants::{BrokenInvariant, Invariant, InvariantChecker};

/// A repair of one subscription.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SubscriptionRepair {
    /// The key of the subscription's item.
    pub key: String,
    /// The changes of attributes, such as `NextPaymentDate: none -> 2027-01-31`.
    pub changes: Vec<String>,
    /// The stored subscription.
    #[serde(skip)]
    pub stored: Subscription,
    /// The subscription with the repaired attributes.
    #[serde(skip)]
    pub repaired: Subscription,
}

impl InvariantChecker {
    /// Returns the possible repairs of the subscriptions in `partition`. A repair is returned only if the repaired
    /// subscription has no violation. If a subscription is also damaged in another way, the attributes from which the
    /// dates follow may be wrong, so the subscription is not repaired. Recorded times in the future prevent no repair,
    /// because the next payment does not follow from them.
    pub fn find_repairs(&self, mut partition: AccountPartition) -> Vec<SubscriptionRepair> {
        let mut repairs = Vec::new();
        for at in 0..partition.subscriptions.len() {
            let stored = partition.subscriptions[at].clone();
            let key = SubscriptionKey::from_subscription(&stored).key().to_string();
            let violations = |partition: &AccountPartition| {
                self.check_account(partition).into_iter().filter(|violation| violation.key == key).collect::<Vec<_>>()
            };
            let is_damaged = |violation: &BrokenInvariant| violation.invariant != Invariant::RecordedInPast;
            let repaired = self.with_index_dates(&stored.without_future_times(self.present()));
            if repaired == stored || violations(&partition).is_empty() {
                continue;
            }
            partition.subscriptions[at] = repaired.clone();
            if !violations(&partition).iter().any(is_damaged) {
                let changes = describe_changes(&stored, &repaired);
                repairs.push(SubscriptionRepair { key, changes, stored: stored.clone(), repaired });
            }
            partition.subscriptions[at] = stored;
        }
        repairs
    }

    /// Returns `s` with the index dates that follow from its other attributes. A date that agrees with these attributes
    /// is unchanged. A retry that is planned too late is moved to the longest gap from today, so that it does not come
    /// earlier than planned. A retry without a valid date is planned for tomorrow, because the last try may have been
    /// today.
    fn with_index_dates(&self, s: &Subscription) -> Subscription {
        let possible = s.next_payment_on.filter(|on| self.is_payment_date_possible(s, *on));
        let latest = s.latest_next_payment_on(self.longest_gap, self.today);
        let is_late = s.next_payment_on.is_some_and(|on| on > latest);
        let next_payment_on = match (&s.attempt, s.status.is_chargeable()) {
            (Some(_), _) => possible.or(Some(self.today)),
            (None, false) => None,
            (None, true) if s.status == SubscriptionStatus::PastDue && is_late => Some(latest),
            (None, true) if s.status == SubscriptionStatus::PastDue => {
                possible.or(Some(s.due_on.max(days_after(self.today, 1))))
            }
            (None, true) => possible.or(Some(s.expected_next_payment_on(self.today))),
        };
        let is_announced = s.reminded_for == Some(s.due_on) || s.due_on <= self.today || s.is_ending();
        let planned = self.lead.date_before(s.due_on);
        let next_reminder_on = match s.status {
            SubscriptionStatus::Active if s.attempt.is_some() || is_announced => s.next_reminder_on,
            SubscriptionStatus::Active => Some(s.next_reminder_on.map_or(planned, |on| on.min(planned))),
            _ => None,
        };
        Subscription { next_payment_on, next_reminder_on, ..s.clone() }
    }
}

/// Describes the attributes that differ between `stored` and `repaired`.
fn describe_changes(stored: &Subscription, repaired: &Subscription) -> Vec<String> {
    let dates = |s: &Subscription| {
        [
            ("NextPaymentDate", s.next_payment_on),
            ("NextReminderDate", s.next_reminder_on),
            ("FirstDeclinedDate", s.first_declined_on),
            ("UnpaidSince", s.unpaid_since),
        ]
    };
    let times = |s: &Subscription| {
        [
            ("AttemptAt", s.attempt.as_ref().map(|attempt| attempt.claimed_at)),
            ("AttemptLease", s.attempt.as_ref().map(|attempt| attempt.leased_until)),
            ("ReminderLease", s.reminder_claim.map(|claim| claim.leased_until)),
            ("PaymentDetailsDate", s.payment_method_at),
            ("ChargedThoughDisputedDate", s.charged_though_disputed_at),
        ]
    };
    let date_text = |on: NaiveDate| on.to_string();
    let time_text = |at: DateTime<Utc>| at.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut changes = changed_values(dates(stored), dates(repaired), date_text);
    changes.extend(changed_values(times(stored), times(repaired), time_text));
    changes
}

/// Describes the values that differ between `before` and `after`, such as `NextPaymentDate: none -> 2027-01-31`.
fn changed_values<T: PartialEq, const N: usize>(
    before: [(&str, Option<T>); N],
    after: [(&str, Option<T>); N],
    text: impl Fn(T) -> String,
) -> Vec<String> {
    let changed = before.into_iter().zip(after).filter(|((_, before), (_, after))| before != after);
    let text = |value: Option<T>| value.map_or_else(|| "none".to_owned(), &text);
    changed.map(|((name, before), (_, after))| format!("{name}: {} -> {}", text(before), text(after))).collect()
}
