//! Reminders: the mails that announce a payment to the customer, and the rules that decide when a reminder is sent.

use chrono::{DateTime, NaiveDate, Utc};

use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::money::Money;

/// The payment that a reminder announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reminder {
    pub due_on: NaiveDate,
    pub amount: Money,
}

/// The decision of the reminder batch about a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReminderDecision {
    /// Send this reminder.
    Send(Reminder),
    /// The due date has passed without a reminder: only remove the subscription from the reminder index.
    Missed,
    /// There will be no payment: only remove the subscription from the reminder index.
    NotNeeded,
    /// The payment is not charged now because of a dispute or an open finding. The subscription stays in the reminder
    /// index: if this ends before the due date, a later run sends the reminder.
    Held,
    /// The reminder date is in the future, or the subscription has no reminder date.
    NotDue,
}

/// Decides whether the reminder of `subscription` is sent on `today`. A reminder is sent on or before the due date, and
/// not while an attempt is open.
pub fn decide_reminder(subscription: &Subscription, today: NaiveDate) -> ReminderDecision {
    match subscription.next_reminder_on {
        Some(on) if on <= today => {
            let will_be_paid = subscription.status == SubscriptionStatus::Active
                && subscription.attempt.is_none()
                && !subscription.is_ending();
            match will_be_paid {
                true if today <= subscription.due_on && subscription.is_held() => ReminderDecision::Held,
                true if today <= subscription.due_on => {
                    ReminderDecision::Send(Reminder { due_on: subscription.due_on, amount: subscription.price })
                }
                true => ReminderDecision::Missed,
                false => ReminderDecision::NotNeeded,
            }
        }
        _ => ReminderDecision::NotDue,
    }
}

impl Subscription {
    /// Returns the next reminder that will be sent, from `today` on; `None` if none will be sent.
    pub fn next_reminder(&self, today: NaiveDate) -> Option<Reminder> {
        match decide_reminder(self, self.next_reminder_on?.max(today)) {
            ReminderDecision::Send(reminder) => Some(reminder),
            _ => None,
        }
    }
}

/// Returns the subscription after the reminder batch has processed its reminder. `sent` is the sent reminder; `None` if
/// no mail was sent.
///
/// If a reminder must still be sent, because no reminder was sent or because the amount or the due date has changed
/// after the mail was sent, the subscription stays in the reminder index. A later run then sends the reminder.
pub fn mark_reminder_processed(
    subscription: &Subscription,
    sent: Option<Reminder>,
    today: NaiveDate,
    now: DateTime<Utc>,
) -> Subscription {
    let mut marked = Subscription { reminder_claim: None, ..subscription.clone() };
    if let Some(reminder) = sent {
        marked.last_reminder_at = Some(now);
        marked.reminded_for = Some(reminder.due_on);
    }
    match decide_reminder(subscription, today) {
        ReminderDecision::Send(owed) if sent != Some(owed) => {}
        ReminderDecision::NotDue | ReminderDecision::Held => {}
        ReminderDecision::Send(_) | ReminderDecision::Missed | ReminderDecision::NotNeeded => {
            marked.next_reminder_on = None
        }
    }
    marked
}
