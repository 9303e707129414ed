//! Catch-up: which of several months that an outage of ours has missed are charged.

use chrono::{DateTime, NaiveDate, Utc};

use super::settle::waive;
use super::{CatchUp, Period, Settlement, Status, Subscription, WaivedReason};

impl CatchUp {
    /// What is to be written before `subscription` is charged on `today`: its due date moved to the latest month owed,
    /// and the older ones waived. `None` when nothing is: one month is owed, or a payment of the oldest has been tried.
    pub fn skip(self, subscription: &Subscription, today: NaiveDate, now: DateTime<Utc>) -> Option<Settlement> {
        let is_missed = subscription.status == Status::Active && subscription.attempt.is_none();
        if self == CatchUp::Each || !is_missed {
            return None;
        }
        let last = Period::of(subscription.last_due_by(today)?);
        let latest = subscription.cancel_from.map_or(last, |from| from.previous().min(last));
        let oldest = Period::of(subscription.due_on);
        if latest <= oldest {
            return None;
        }
        let waived = waive(subscription, oldest, latest, WaivedReason::Outage, now);
        let mut next = subscription.clone();
        next.move_to(latest);
        next.next_payment_on = Some(next.due_on);
        Some(Settlement { waived, ..next.into() })
    }
}
