//! Pause and resume. A subscription is paused only while nothing is owed or under way, so that a pause erases no payment.

use chrono::{DateTime, NaiveDate, Utc};

use super::settle::waive;
use super::{LeadDays, OnResume, Period, Refusal, Settlement, Status, Subscription, WaivedReason};

impl Subscription {
    /// Stops payments until resumed.
    ///
    /// # Errors
    /// While anything is owed or under way: [`Refusal::Status`] if past due, unpaid or cancelled, [`Refusal::Paying`],
    /// [`Refusal::Owed`]. [`Refusal::Ending`].
    pub fn pause(&self, today: NaiveDate) -> Result<Subscription, Refusal> {
        self.refuse_if(&[Status::PastDue, Status::Unpaid, Status::Cancelled], "paused")?;
        if self.status == Status::Paused {
            return Ok(self.clone());
        }
        if self.cancel_from.is_some() {
            return Err(Refusal::Ending);
        }
        if let Some(attempt) = &self.attempt {
            return Err(Refusal::Paying { due_on: attempt.due_on, action: "paused" });
        }
        if self.due_on <= today {
            return Err(Refusal::Owed { due_on: self.due_on });
        }
        Ok(self.stopped(Status::Paused))
    }

    /// Takes payments up again. Of the months that fell due in the pause all but the last are waived; the last is owed,
    /// keeps its due date and is payable on `today`, or is waived as well, as `on_resume` says.
    ///
    /// # Errors
    /// [`Refusal::Status`] while past due, unpaid or cancelled; [`Refusal::Paying`] while an attempt is open.
    pub fn resume(
        &self,
        on_resume: OnResume,
        lead: LeadDays,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Settlement, Refusal> {
        self.refuse_if(&[Status::PastDue, Status::Unpaid, Status::Cancelled], "resumed")?;
        if self.status != Status::Paused {
            return Ok(self.clone().into());
        }
        if let Some(attempt) = &self.attempt {
            return Err(Refusal::Paying { due_on: attempt.due_on, action: "resumed" });
        }
        let mut resumed = Subscription { status: Status::Active, ..self.clone() };
        let mut waived = Vec::new();
        if let Some(last) = self.last_due_by(today) {
            let is_owed = on_resume == OnResume::Charge || last == today;
            let next = if is_owed { Period::of(last) } else { Period::of(last).next() };
            waived = waive(self, Period::of(self.due_on), next, WaivedReason::Paused, now);
            resumed.move_to(next);
        }
        resumed.schedule(lead, today);
        Ok(Settlement { waived, ..resumed.into() })
    }
}
