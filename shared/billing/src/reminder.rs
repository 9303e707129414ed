//! Reminders: what is said before a payment, until when, and when it has been said.

use chrono::{DateTime, NaiveDate, Utc};

use super::{Money, Status, Subscription};

/// What a reminder states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reminder {
    pub due_on: NaiveDate,
    pub amount: Money,
}

/// What the reminder batch does with a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reminding {
    /// Send this.
    Send(Reminder),
    /// Its due date has passed, and it was not sent: only take it out of the index.
    Missed,
    /// Nothing to say any more: only take it out of the index.
    Drop,
    /// Its reminder date is not reached, or it has none.
    NotDue,
}

/// Decides on the reminder of `subscription` on `today`. It is sent until the due date itself, not after, and not while
/// the payment is being made.
pub fn remind(subscription: &Subscription, today: NaiveDate) -> Reminding {
    match subscription.next_reminder_on {
        Some(on) if on <= today => {
            let will_be_paid =
                subscription.status == Status::Active && subscription.attempt.is_none() && !subscription.is_ending();
            match will_be_paid {
                true if today <= subscription.due_on => {
                    Reminding::Send(Reminder { due_on: subscription.due_on, amount: subscription.price })
                }
                true => Reminding::Missed,
                false => Reminding::Drop,
            }
        }
        _ => Reminding::NotDue,
    }
}

/// The subscription after its reminder was handled: `sent` is what the customer was told, `None` if it was dropped.
///
/// If amount or date changed between sending and marking, the subscription stays in the index and is reminded again.
pub fn mark_reminded(
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
    match remind(subscription, today) {
        Reminding::Send(owed) if sent != Some(owed) => {}
        Reminding::NotDue => {}
        Reminding::Send(_) | Reminding::Missed | Reminding::Drop => marked.next_reminder_on = None,
    }
    marked
}
