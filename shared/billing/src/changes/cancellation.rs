//! Cancellation of a subscription: immediately, or at the end of the current period. An immediate cancellation waives
//! every owed month. After a cancellation at the end of the period, owed months are still charged. In both cases, the
//! field `cancel_from` contains the first month that is not owed.

use chrono::{DateTime, NaiveDate, Utc};

use crate::records::waived_period::WaivedReason;
use crate::settings::policy::LeadDays;
use crate::settlement::settle::Settlement;
use crate::settlement::settle::waive_periods;
use crate::subscriptions::refusal::ChangeRefusal;
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::calendar::Period;

impl Subscription {
    /// Cancels the subscription immediately and permanently. All owed months are waived. The month of an open attempt
    /// is waived only when the attempt is settled without success.
    pub fn cancel(&self, today: NaiveDate, now: DateTime<Utc>) -> Settlement {
        if self.status == SubscriptionStatus::Cancelled {
            return self.clone().into();
        }
        let due_next = self.due_period();
        let last = self.last_due_by(today).map(Period::from_day);
        // The month in which a planned cancellation takes effect is not owed, even if its due date has been reached.
        let first_not_owed = |last: Period| self.cancel_from.map_or(last.next(), |from| from.min(last.next()));
        let first = if self.attempt.is_some() { due_next.next() } else { due_next };
        let end = last.map_or(first, first_not_owed).max(first);
        let waived = match (self.status, last) {
            // A month is waived with the reason `paused` only if the pause lasted from the month's due date to the next
            // due date.
            (SubscriptionStatus::Paused, Some(last)) => {
                let paused = waive_periods(self, first, last, WaivedReason::Paused, now);
                paused.into_iter().chain(waive_periods(self, last, end, WaivedReason::Cancelled, now)).collect()
            }
            (SubscriptionStatus::Unpaid, _) => waive_periods(self, first, end, WaivedReason::Unpaid, now),
            _ => waive_periods(self, first, end, WaivedReason::Cancelled, now),
        };
        let mut cancelled =
            Subscription { cancel_from: Some(end), ..self.with_stopped_status(SubscriptionStatus::Cancelled) };
        if self.attempt.is_none() {
            cancelled.move_to_period(end);
        }
        Settlement { waived, ..cancelled.into() }
    }

    /// Plans the cancellation of the subscription on its next due date. The payment of this due date is not charged.
    /// Payments that are owed on `today` are still charged.
    ///
    /// # Errors
    /// [`ChangeRefusal::NoPeriod`] if the subscription is paused or unpaid.
    pub fn cancel_at_period_end(&self, today: NaiveDate) -> Result<Subscription, ChangeRefusal> {
        if self.cancel_from.is_some() || self.status == SubscriptionStatus::Cancelled {
            return Ok(self.clone());
        }
        if matches!(self.status, SubscriptionStatus::Paused | SubscriptionStatus::Unpaid) {
            return Err(ChangeRefusal::NoPeriod { status: self.status });
        }
        let mut ending = self.clone();
        let is_due_later = self.due_on > today && self.attempt.is_none();
        let next_on = if is_due_later { self.due_on } else { self.first_due_after(today.max(self.due_on)) };
        ending.cancel_from = Some(Period::from_day(next_on));
        if ending.is_ending() {
            ending.next_reminder_on = None;
        }
        Ok(ending)
    }

    /// Plans the cancellation of a new subscription on `on`, one of its due dates. The payments before this date are
    /// charged; the payment of this date is not.
    ///
    /// # Errors
    /// - [`ChangeRefusal::EndsBeforeFirstPayment`] if `on` is before the first due date
    /// - [`ChangeRefusal::NotOnPaymentDay`] if `on` is not the due date of its month
    pub fn ending_on(self, on: NaiveDate) -> Result<Subscription, ChangeRefusal> {
        let (period, first) = (Period::from_day(on), self.due_on);
        let expected = self.due_in(period);
        if on < first {
            return Err(ChangeRefusal::EndsBeforeFirstPayment { requested: on, first });
        }
        if on != expected {
            return Err(ChangeRefusal::NotOnPaymentDay { requested: on, expected });
        }
        let mut ending = Subscription { cancel_from: Some(period), ..self };
        if ending.is_ending() {
            ending.next_reminder_on = None;
        }
        Ok(ending)
    }

    /// Removes a planned cancellation, and plans the reminder of the next payment again.
    ///
    /// # Errors
    /// - [`ChangeRefusal::Status`] if the subscription is already cancelled
    /// - [`ChangeRefusal::Ended`] if the day of the planned cancellation has been reached
    pub fn uncancel(&self, lead: LeadDays, today: NaiveDate) -> Result<Subscription, ChangeRefusal> {
        self.refuse_if_status_in(&[SubscriptionStatus::Cancelled], "reactivated; create a new one")?;
        if let Some(on) = self.cancels_on().filter(|on| *on <= today) {
            return Err(ChangeRefusal::Ended { on });
        }
        let mut kept = Subscription { cancel_from: None, ..self.clone() };
        if self.is_ending() {
            kept.plan_reminder(lead, today);
        }
        Ok(kept)
    }

    /// Returns the due date on which the planned cancellation takes effect; `None` if no cancellation is planned. The
    /// payment of this due date is not charged.
    pub fn cancels_on(&self) -> Option<NaiveDate> {
        let from = self.cancel_from.filter(|_| self.status != SubscriptionStatus::Cancelled)?;
        Some(if self.is_ending() { self.due_on } else { self.due_in(from) })
    }

    /// Returns whether the subscription will be cancelled on its current due date instead of being charged.
    pub fn is_ending(&self) -> bool {
        self.cancel_from.is_some_and(|from| from <= self.due_period())
    }
}
