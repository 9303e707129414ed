//! Pause and resume. A subscription with an owed payment or an open attempt cannot be paused, so that a pause never
//! waives an owed payment.

use chrono::{DateTime, NaiveDate, Utc};

use crate::records::waived_period::WaivedReason;
use crate::settings::policy::{LeadDays, OnResume};
use crate::settlement::settle::Settlement;
use crate::settlement::settle::waive_periods;
use crate::subscriptions::refusal::ChangeRefusal;
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::calendar::Period;

impl Subscription {
    /// Stops payments until the subscription is resumed.
    ///
    /// # Errors
    /// - [`ChangeRefusal::Status`] if the subscription is past due, unpaid or cancelled
    /// - [`ChangeRefusal::Ending`] if a cancellation is planned
    /// - [`ChangeRefusal::Paying`] if an attempt is open
    /// - [`ChangeRefusal::Owed`] if a payment is due
    pub fn pause(&self, today: NaiveDate) -> Result<Subscription, ChangeRefusal> {
        self.refuse_if_status_in(
            &[SubscriptionStatus::PastDue, SubscriptionStatus::Unpaid, SubscriptionStatus::Cancelled],
            "paused",
        )?;
        if self.status == SubscriptionStatus::Paused {
            return Ok(self.clone());
        }
        if self.cancel_from.is_some() {
            return Err(ChangeRefusal::Ending);
        }
        if let Some(attempt) = &self.attempt {
            return Err(ChangeRefusal::Paying { due_on: attempt.due_on, action: "paused" });
        }
        if self.due_on <= today {
            return Err(ChangeRefusal::Owed { due_on: self.due_on });
        }
        Ok(self.with_stopped_status(SubscriptionStatus::Paused))
    }

    /// Resumes payments. All months that fell due during the pause are waived, except the last of these months.
    /// `on_resume` decides whether the last month is waived too, or is owed. An owed month keeps its due date, and is
    /// payable on `today`. A month that falls due on `today` is owed in any case.
    ///
    /// # Errors
    /// - [`ChangeRefusal::Status`] if the subscription is past due, unpaid or cancelled
    /// - [`ChangeRefusal::Paying`] if an attempt is open
    pub fn resume(
        &self,
        on_resume: OnResume,
        lead: LeadDays,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Settlement, ChangeRefusal> {
        self.refuse_if_status_in(
            &[SubscriptionStatus::PastDue, SubscriptionStatus::Unpaid, SubscriptionStatus::Cancelled],
            "resumed",
        )?;
        if self.status != SubscriptionStatus::Paused {
            return Ok(self.clone().into());
        }
        if let Some(attempt) = &self.attempt {
            return Err(ChangeRefusal::Paying { due_on: attempt.due_on, action: "resumed" });
        }
        let mut resumed = Subscription { status: SubscriptionStatus::Active, ..self.clone() };
        let mut waived = Vec::new();
        if let Some(last) = self.last_due_by(today) {
            let is_owed = on_resume == OnResume::Charge || last == today;
            let next = if is_owed { Period::from_day(last) } else { Period::from_day(last).next() };
            waived = waive_periods(self, self.due_period(), next, WaivedReason::Paused, now);
            resumed.move_to_period(next);
        }
        resumed.schedule_payment_and_reminder(lead, today);
        Ok(Settlement { waived, ..resumed.into() })
    }
}
