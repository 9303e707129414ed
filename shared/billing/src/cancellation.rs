//! Cancellation: now, or at the end of a period. However a subscription ends, every month that is owed then is recorded as
//! waived, and the first month that is not stays on record.

use chrono::{DateTime, NaiveDate, Utc};

use super::settle::waive;
use super::{LeadDays, Period, Refusal, Settlement, Status, Subscription, WaivedReason};

impl Subscription {
    /// Ends it for good, now. What is owed is waived; the month of an open attempt only once that is settled unpaid.
    pub fn cancel(&self, today: NaiveDate, now: DateTime<Utc>) -> Settlement {
        if self.status == Status::Cancelled {
            return self.clone().into();
        }
        let due_next = Period::of(self.due_on);
        let last = self.last_due_by(today).map(Period::of);
        // The month in which it was to end is not owed, though its day has come.
        let owed_by = |day: Period| self.cancel_from.map_or(day.next(), |from| from.min(day.next()));
        let first = if self.attempt.is_some() { due_next.next() } else { due_next };
        let end = last.map_or(first, owed_by).max(first);
        let waived = match (self.status, last) {
            // A month is waived as paused if the pause lasted from its due date to the next one.
            (Status::Paused, Some(last)) => {
                let paused = waive(self, first, last, WaivedReason::Paused, now);
                paused.into_iter().chain(waive(self, last, end, WaivedReason::Cancelled, now)).collect()
            }
            (Status::Unpaid, _) => waive(self, first, end, WaivedReason::Unpaid, now),
            _ => waive(self, first, end, WaivedReason::Cancelled, now),
        };
        let mut cancelled = Subscription { cancel_from: Some(end), ..self.stopped(Status::Cancelled) };
        if self.attempt.is_none() {
            cancelled.move_to(end);
        }
        Settlement { waived, ..cancelled.into() }
    }

    /// Ends it when the next due date comes, uncharged. What is owed on `today` is charged still.
    ///
    /// # Errors
    /// [`Refusal::NoPeriod`] while paused or unpaid.
    pub fn cancel_at_period_end(&self, today: NaiveDate) -> Result<Subscription, Refusal> {
        if self.cancel_from.is_some() || self.status == Status::Cancelled {
            return Ok(self.clone());
        }
        if matches!(self.status, Status::Paused | Status::Unpaid) {
            return Err(Refusal::NoPeriod { status: self.status });
        }
        let mut ending = self.clone();
        let is_ahead = self.due_on > today && self.attempt.is_none();
        let next_on = if is_ahead { self.due_on } else { self.first_due_after(today.max(self.due_on)) };
        ending.cancel_from = Some(Period::of(next_on));
        if ending.is_ending() {
            ending.next_reminder_on = None;
        }
        Ok(ending)
    }

    /// Undoes [`Subscription::cancel_at_period_end`]; its payment is reminded of again.
    ///
    /// # Errors
    /// [`Refusal::Status`] once cancelled; [`Refusal::Ended`] once the day has come.
    pub fn uncancel(&self, lead: LeadDays, today: NaiveDate) -> Result<Subscription, Refusal> {
        self.refuse_if(&[Status::Cancelled], "taken up again; create a new one")?;
        if let Some(on) = self.cancels_on().filter(|on| *on <= today) {
            return Err(Refusal::Ended { on });
        }
        let mut kept = Subscription { cancel_from: None, ..self.clone() };
        if self.is_ending() {
            kept.plan_reminder(lead, today);
        }
        Ok(kept)
    }

    /// The due date on which it will be cancelled, uncharged.
    pub fn cancels_on(&self) -> Option<NaiveDate> {
        let from = self.cancel_from.filter(|_| self.status != Status::Cancelled)?;
        Some(if self.is_ending() { self.due_on } else { self.due_in(from) })
    }

    /// Whether the current due date is the one that ends it.
    pub fn is_ending(&self) -> bool {
        self.cancel_from.is_some_and(|from| from <= Period::of(self.due_on))
    }
}
