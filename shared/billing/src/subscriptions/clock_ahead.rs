//! The rules for a subscription that a worker wrote while its clock was ahead: which stored times and dates are
//! impossible, and which values replace them.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use crate::records::attempt::Attempt;
use crate::settings::dunning::MAX_DUNNING_DAYS;
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::calendar::Period;
use crate::values::calendar::days_after;

/// The maximum expected difference between the clocks of two machines, such as a worker and the gateway.
pub const MAX_EXPECTED_CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(10);

/// The present time of a clock that is right. Stored times are compared with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PresentTime {
    /// Today's date in the billing time zone.
    pub today: NaiveDate,
    pub now: DateTime<Utc>,
}

impl PresentTime {
    /// Returns whether `at` is in the future, so that only a clock that was ahead can have recorded it.
    pub fn is_in_future(&self, at: DateTime<Utc>) -> bool {
        at.signed_duration_since(self.now) > MAX_EXPECTED_CLOCK_DIFFERENCE
    }

    /// Returns whether a lease ends so late that only a worker with a clock that was ahead can have written it.
    pub fn is_lease_too_late(&self, leased_until: DateTime<Utc>) -> bool {
        leased_until.checked_sub_signed(Attempt::LEASE).is_some_and(|leased_at| self.is_in_future(leased_at))
    }
}

/// Returns the last day of the month after `today`. Once a payment of a subscription has been due, its next payment date
/// is this day or earlier. So if the next payment date is later although the due date has come, a clock was ahead.
pub fn last_payment_day_in_sight(today: NaiveDate) -> NaiveDate {
    Period::from_day(today).next().last_day()
}

impl Subscription {
    /// Returns the date on which the payment of `due_on` can be expected: `next_payment_on`, or tomorrow (the due date,
    /// if that is later) if `next_payment_on` is later than every retry schedule allows.
    pub(crate) fn expected_payment_on(&self, next_payment_on: NaiveDate, today: NaiveDate) -> NaiveDate {
        let latest = self.due_on.max(days_after(today, MAX_DUNNING_DAYS));
        if next_payment_on > latest { self.due_on.max(days_after(today, 1)) } else { next_payment_on }
    }

    /// Returns the latest next payment date that is possible while no attempt is open. For an active subscription, this
    /// is the due date, or tomorrow if the due date has come. For a past due subscription, the next retry is at most
    /// `longest_gap` days ahead, which is the longest gap of the retry schedule.
    pub fn latest_next_payment_on(&self, longest_gap: u32, today: NaiveDate) -> NaiveDate {
        let days = if self.status == SubscriptionStatus::PastDue { longest_gap.max(1) } else { 1 };
        self.due_on.max(days_after(today, days))
    }

    /// Returns the next payment date that follows from the due date and the last payment: the due date, or the day after
    /// the last payment if that is later, because a subscription is charged at most once per day. A last payment in the
    /// future was made at an unknown time before now, so the next payment is planned for tomorrow. It is planned for
    /// tomorrow, too, if the last payment was made yesterday in UTC, because that can be today in the billing time zone.
    pub fn expected_next_payment_on(&self, today: NaiveDate) -> NaiveDate {
        let after_last_payment = self.last_payment_at.map(|at| {
            let next_day = days_after(at.date_naive(), 1);
            if next_day < today { next_day } else { days_after(today, 1) }
        });
        after_last_payment.map_or(self.due_on, |on| self.due_on.max(on))
    }

    /// Replaces the next payment date of an active subscription with the expected date if it is impossibly late. Such a
    /// date was written by a run whose clock was ahead. Without this change, the owed payment would wait for that date.
    pub(crate) fn replace_late_payment_date(&mut self, today: NaiveDate) {
        let latest = self.latest_next_payment_on(1, today);
        let is_late = self.next_payment_on.is_some_and(|on| on > latest);
        if is_late && self.status == SubscriptionStatus::Active && self.attempt.is_none() {
            self.next_payment_on = Some(self.expected_next_payment_on(today));
        }
    }

    /// Returns the subscription without the impossible times that change what happens next:
    /// - The leases of the attempt and of the reminder have ended.
    /// - The attempt was claimed before its true claim, so that the look-up lists every payment that it can have made.
    /// - The first decline and the beginning of the unpaid time are today at the latest.
    /// - The customer gave the payment method, and a person allowed its charge, now at the latest.
    ///
    /// The times of past payments and reminders stay as they were recorded.
    pub fn without_future_times(&self, present: PresentTime) -> Subscription {
        let PresentTime { today, now, .. } = present;
        let by_now = |at: DateTime<Utc>| if present.is_in_future(at) { now } else { at };
        let attempt = self.attempt.clone().map(|attempt| {
            let is_claim_in_future = present.is_in_future(attempt.claimed_at);
            let is_lease_too_late = is_claim_in_future || present.is_lease_too_late(attempt.leased_until);
            Attempt {
                claimed_at: if is_claim_in_future { self.earliest_claim(present) } else { attempt.claimed_at },
                leased_until: if is_lease_too_late { now } else { attempt.leased_until },
                ..attempt
            }
        });
        let reminder_claim = self.reminder_claim.map(|mut claim| {
            if present.is_lease_too_late(claim.leased_until) {
                claim.leased_until = now;
            }
            claim
        });
        Subscription {
            attempt,
            reminder_claim,
            // A decline on a clock that was ahead can be earlier than the due date.
            first_declined_on: self.first_declined_on.map(|on| on.min(today.max(self.due_on))),
            unpaid_since: self.unpaid_since.map(|on| on.min(today)),
            payment_method_at: self.payment_method_at.map(by_now),
            charged_though_disputed_at: self.charged_though_disputed_at.map(by_now),
            ..self.clone()
        }
    }

    /// Returns a time that is certainly before the claim of the open attempt: the last payment, or else the creation of
    /// the subscription. Times in the future are not used.
    fn earliest_claim(&self, present: PresentTime) -> DateTime<Utc> {
        let before_claim = [self.last_payment_at, Some(self.created_at)];
        before_claim.into_iter().flatten().find(|at| !present.is_in_future(*at)).unwrap_or(DateTime::UNIX_EPOCH)
    }
}
