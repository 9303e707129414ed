//! Repairs damaged index attributes of subscriptions. These attributes are the dates by which the batches find a
//! subscription. The correct dates follow from the other attributes of the subscription.

use billing::{Status, Subscription, days_after};
use chrono::NaiveDate;
use serde::Serialize;
use store::{AccountPartition, SubscriptionKey};

use super::invariants::InvariantChecker;

/// A repair of the index attributes of one subscription.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Repair {
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
    /// dates follow may be wrong, so the subscription is not repaired.
    pub fn repairs(&self, mut partition: AccountPartition) -> Vec<Repair> {
        let mut repairs = Vec::new();
        for at in 0..partition.subscriptions.len() {
            let stored = partition.subscriptions[at].clone();
            let key = SubscriptionKey::from_subscription(&stored).key().to_string();
            let is_violated =
                |partition: &AccountPartition| self.check(partition).iter().any(|violation| violation.key == key);
            let repaired = self.with_index_dates(&stored);
            if repaired == stored || !is_violated(&partition) {
                continue;
            }
            partition.subscriptions[at] = repaired.clone();
            if !is_violated(&partition) {
                let changes = changed_dates(&stored, &repaired);
                repairs.push(Repair { key, changes, stored: stored.clone(), repaired });
            }
            partition.subscriptions[at] = stored;
        }
        repairs
    }

    /// Returns `s` with the index dates that follow from its other attributes. A date that agrees with these attributes
    /// is unchanged. The charge of an owed payment without a valid date is planned for tomorrow, not for today, because
    /// a payment for another month may have succeeded today.
    fn with_index_dates(&self, s: &Subscription) -> Subscription {
        let latest = days_after(self.today, if s.status == Status::PastDue { self.retry_days.max(1) } else { 1 });
        let next_payment_on = match (&s.attempt, s.status.is_chargeable()) {
            (Some(_), _) => s.next_payment_on.or(Some(self.today)),
            (None, false) => None,
            (None, true) if s.due_on > self.today => Some(s.due_on),
            (None, true) => {
                s.next_payment_on.filter(|on| (s.due_on..=latest).contains(on)).or(Some(days_after(self.today, 1)))
            }
        };
        let is_announced = s.reminded_for == Some(s.due_on) || s.due_on <= self.today || s.is_ending();
        let planned = self.lead.before(s.due_on);
        let next_reminder_on = match s.status {
            Status::Active if s.attempt.is_some() || is_announced => s.next_reminder_on,
            Status::Active => Some(s.next_reminder_on.map_or(planned, |on| on.min(planned))),
            _ => None,
        };
        Subscription { next_payment_on, next_reminder_on, ..s.clone() }
    }
}

/// Describes the index dates that differ between `stored` and `repaired`.
fn changed_dates(stored: &Subscription, repaired: &Subscription) -> Vec<String> {
    let text = |date: Option<NaiveDate>| date.map_or_else(|| "none".to_owned(), |date| date.to_string());
    let dates = [
        ("NextPaymentDate", stored.next_payment_on, repaired.next_payment_on),
        ("NextReminderDate", stored.next_reminder_on, repaired.next_reminder_on),
    ];
    let changed = dates.into_iter().filter(|(_, before, after)| before != after);
    changed.map(|(name, before, after)| format!("{name}: {} -> {}", text(before), text(after))).collect()
}
