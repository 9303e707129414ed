//! The reason why a subscription was or was not charged on a day, computed only from its records.
//!
//! The stored subscription contains only its current status. The action log, the disputes and the findings of its account
//! show the status on an earlier day (see `past_holds`). This module does not use the run records of the explained day. Run records are needed only for the reason [`ChargeReason::Owed`]: a
//! payment was owed, and no attempt is recorded.

use chrono::{DateTime, NaiveDate, Utc};

use super::past_holds::{HoldRecords, PastHold};
use billing::{
    Attempt, AttemptEnd, AttemptRecord, PaymentRecords, Period, PlannedPayment, Policy, Receipt, Subscription,
    WaivedPeriod, WaivedReason,
};
use days::RequestedDay;

/// The reason why a subscription was or was not charged on the explained day. `next` is the outcome of the payment
/// after the explained day; `None` if the records show no such outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChargeReason {
    /// The subscription was charged.
    Charged(Receipt),
    /// An attempt was claimed on or before the explained day, and its outcome is still unknown.
    Open(Attempt),
    /// An attempt failed on the explained day.
    Tried { attempt: AttemptRecord, next: Option<LaterOutcome> },
    /// An earlier attempt of the owed payment had failed, and there was no attempt on the explained day.
    BetweenTries { last: AttemptRecord, next: Option<LaterOutcome> },
    /// A payment was owed, and no attempt is recorded. The run records of the explained day may show the reason.
    Owed { due_on: NaiveDate, next: Option<LaterOutcome> },
    /// The payment of the month succeeded before the explained day.
    Paid(Receipt),
    /// The payment of the month is waived.
    Waived(WaivedPeriod),
    /// A payment was or will be owed, and the subscription is not charged, for example because it is paused.
    Held { due_on: NaiveDate, hold: PastHold, next: Option<LaterOutcome> },
    /// The subscription will be cancelled on the due date `on`, without a charge.
    Ending { on: NaiveDate },
    /// The first payment is due after the explained day.
    NotBegun { created_on: NaiveDate, first_due_on: NaiveDate },
    /// No payment was due. `next_on` is the date of the next payment, if one is planned.
    NotDue { next_on: Option<NaiveDate> },
    /// The charge is planned for the explained day, which is in the future.
    Planned { due_on: NaiveDate },
    /// The payment of the month is neither paid nor waived nor owed.
    Unrecorded { period: Period },
    /// The records of the explained day may have expired.
    Expired,
}

impl ChargeReason {
    /// Returns the due date that the reason is about: the date of a payment, or of the end of the subscription. `None` if
    /// the reason is about no date.
    pub fn due_on(&self) -> Option<NaiveDate> {
        match self {
            ChargeReason::Charged(receipt) | ChargeReason::Paid(receipt) => Some(receipt.due_on),
            ChargeReason::Open(open) => Some(open.due_on),
            ChargeReason::Tried { attempt, .. } | ChargeReason::BetweenTries { last: attempt, .. } => {
                Some(attempt.due_on)
            }
            ChargeReason::Waived(waived) => Some(waived.due_on),
            ChargeReason::Owed { due_on, .. }
            | ChargeReason::Held { due_on, .. }
            | ChargeReason::Planned { due_on } => Some(*due_on),
            ChargeReason::Ending { on } => Some(*on),
            ChargeReason::NotBegun { .. }
            | ChargeReason::NotDue { .. }
            | ChargeReason::Unrecorded { .. }
            | ChargeReason::Expired => None,
        }
    }
}

/// The outcome of a payment after the explained day, or the plan for the payment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaterOutcome {
    Paid {
        on: NaiveDate,
    },
    Waived {
        on: NaiveDate,
        reason: WaivedReason,
    },
    /// A later attempt began, and its outcome is still unknown.
    Open {
        since: DateTime<Utc>,
    },
    /// The next attempt is planned for the date `on`. If this date has passed, the next run makes the attempt.
    Due {
        on: NaiveDate,
    },
    /// The payment is not tried, because the subscription is not charged.
    Held {
        hold: PastHold,
    },
}

/// Returns the reason why `subscription` (in its current state) was or was not charged on `day`, from its `records`, and
/// from the records of the times in which it was not charged. For a day in the future, `policy` decides what is planned.
pub fn find_charge_reason(
    subscription: &Subscription,
    records: &PaymentRecords,
    hold_records: &HoldRecords,
    policy: &Policy,
    day: &RequestedDay,
) -> ChargeReason {
    let holds = hold_records.holds_of(subscription, records, policy, day);
    let explained = SubscriptionOnDay { subscription, records, holds, policy, day };
    if day.is_in_future() {
        return explained.reason_for_future_day();
    }
    let recorded = explained
        .reason_if_attempted()
        .or_else(|| explained.reason_if_owed())
        .or_else(|| explained.reason_if_settled());
    recorded.unwrap_or_else(|| explained.reason_if_nothing_owed())
}

/// A subscription with its records, on the day that is explained.
struct SubscriptionOnDay<'a> {
    subscription: &'a Subscription,
    records: &'a PaymentRecords,
    holds: Vec<PastHold>,
    policy: &'a Policy,
    day: &'a RequestedDay,
}

impl SubscriptionOnDay<'_> {
    /// Returns the reason if a charge or a failed attempt is recorded on the explained day, or an attempt was open on
    /// that day.
    fn reason_if_attempted(&self) -> Option<ChargeReason> {
        let is_that_day = |at| self.day.date_of(at) == self.day.on;
        if let Some(receipt) = self.records.receipts.iter().find(|receipt| is_that_day(receipt.processed_at)) {
            return Some(ChargeReason::Charged(receipt.clone()));
        }
        let open = self.subscription.attempt.as_ref();
        if let Some(open) = open.filter(|open| self.day.date_of(open.claimed_at) <= self.day.on) {
            return Some(ChargeReason::Open(open.clone()));
        }
        let tried = self.records.attempts.iter().rfind(|attempt| is_that_day(attempt.processed_at))?;
        Some(ChargeReason::Tried { attempt: tried.clone(), next: self.later_outcome(tried.due_on) })
    }

    /// Returns the reason if a payment was owed on the explained day. Explains the payment of the month or, if that
    /// payment was not owed, the oldest owed payment.
    fn reason_if_owed(&self) -> Option<ChargeReason> {
        let (on, period) = (self.day.on, Period::from_day(self.day.on));
        let owed = self.due_dates().filter(|(due_on, settled_on)| *due_on <= on && settled_on.is_none_or(|at| at > on));
        let due_on =
            owed.map(|(due_on, _)| due_on).min_by_key(|due_on| (Period::from_day(*due_on) != period, *due_on))?;
        let next = self.later_outcome(due_on);
        if let Some(LaterOutcome::Waived { .. }) = next {
            return self
                .records
                .waived
                .iter()
                .find(|waived| waived.due_on == due_on)
                .cloned()
                .map(ChargeReason::Waived);
        }
        let was_tried_later = self.attempts_for(due_on).any(|attempt| self.day.date_of(attempt.processed_at) > on);
        let continued = was_tried_later || matches!(next, Some(LaterOutcome::Paid { .. } | LaterOutcome::Open { .. }));
        let hold = self.holds.iter().find(|hold| hold.is_known_on(on));
        if let Some(&hold) = hold.or_else(|| self.undated_hold().filter(|_| !continued)) {
            return Some(ChargeReason::Held { due_on, hold, next });
        }
        if let Some(on) = self.end_without_charge().filter(|_| !continued) {
            return Some(ChargeReason::Ending { on });
        }
        let last = self.attempts_for(due_on).filter(|attempt| self.day.date_of(attempt.processed_at) < on).last();
        let is_due_later = matches!(next, Some(LaterOutcome::Due { on: next_on }) if next_on > on);
        match last {
            // Between two attempts, no attempt was due on the explained day. After a rejection this is not true: the
            // rejected payment is retried on the next day, so an attempt was due.
            Some(last) if (last.outcome != AttemptEnd::Rejected || last.is_decline) && (continued || is_due_later) => {
                Some(ChargeReason::BetweenTries { last: last.clone(), next })
            }
            _ if self.day.may_have_expired() && !continued => Some(ChargeReason::Expired),
            _ => Some(ChargeReason::Owed { due_on, next }),
        }
    }

    /// Returns the reason if the payment of the month was paid or waived on or before the explained day.
    fn reason_if_settled(&self) -> Option<ChargeReason> {
        let (on, period) = (self.day.on, Period::from_day(self.day.on));
        let is_settled_by_day = |due_on, at| Period::from_day(due_on) == period && self.day.date_of(at) <= on;
        let paid = self.records.receipts.iter().find(|receipt| is_settled_by_day(receipt.due_on, receipt.processed_at));
        let waived = self.records.waived.iter().find(|waived| is_settled_by_day(waived.due_on, waived.waived_at));
        paid.cloned().map(ChargeReason::Paid).or_else(|| waived.cloned().map(ChargeReason::Waived))
    }

    /// Returns the reason for a day on which no payment was owed, paid, waived or tried.
    fn reason_if_nothing_owed(&self) -> ChargeReason {
        let on = self.day.on;
        let period = Period::from_day(self.day.on);
        let subscription = self.subscription;
        if on < subscription.first_due_on {
            return self.not_begun_reason();
        }
        if self.day.may_have_expired() {
            return ChargeReason::Expired;
        }
        let is_after_day = |due_on: &NaiveDate| *due_on > on;
        let is_of_this_month =
            self.due_dates().any(|(due_on, _)| is_after_day(&due_on) && Period::from_day(due_on) == period);
        let paid = self.records.receipts.iter().map(|receipt| receipt.due_on);
        let next_on = paid.chain([subscription.due_on]).filter(is_after_day).min();
        if !is_of_this_month && subscription.payment_day.due_in(period) <= on {
            return ChargeReason::Unrecorded { period };
        }
        let will_be = subscription.hold_reason(self.policy).is_none() && !subscription.is_ending();
        ChargeReason::NotDue { next_on: next_on.filter(|next_on| *next_on != subscription.due_on || will_be) }
    }

    /// Returns the reason for a day in the future, from the payments that are planned now.
    fn reason_for_future_day(&self) -> ChargeReason {
        let (on, subscription) = (self.day.on, self.subscription);
        // The payments that are planned without a dispute and without findings: the dispute or the finding is the reason
        // only on the days of these payments.
        let unheld = Subscription { disputed_at: None, open_findings: 0, ..subscription.clone() };
        let planned = unheld.planned_payments(self.policy, self.day.today).find(|payment| payment.payment_on >= on);
        match planned {
            Some(PlannedPayment { due_on, payment_on, .. }) if payment_on == on => match self.present_hold() {
                Some(hold) => ChargeReason::Held { due_on, hold, next: None },
                None => ChargeReason::Planned { due_on },
            },
            _ if on < subscription.first_due_on && subscription.status.is_chargeable() => self.not_begun_reason(),
            _ => {
                let next_on = planned.filter(|_| subscription.hold_reason(self.policy).is_none());
                self.reason_if_settled()
                    .or_else(|| self.reason_if_stopped())
                    .or_else(|| self.end_without_charge().map(|on| ChargeReason::Ending { on }))
                    .unwrap_or(ChargeReason::NotDue { next_on: next_on.map(|payment| payment.payment_on) })
            }
        }
    }

    /// Returns the reason for a day before the first due date.
    fn not_begun_reason(&self) -> ChargeReason {
        let created_on = self.day.date_of(self.subscription.created_at);
        ChargeReason::NotBegun { created_on, first_due_on: self.subscription.first_due_on }
    }

    /// Returns why the subscription is not charged now; `None` if it is charged.
    fn present_hold(&self) -> Option<PastHold> {
        self.holds.iter().find(|hold| hold.until.is_none()).copied()
    }

    /// Returns why the subscription is not charged now, if the records do not contain when this began.
    fn undated_hold(&self) -> Option<&PastHold> {
        self.holds.iter().find(|hold| hold.until.is_none() && hold.since.is_none())
    }

    /// Returns the reason for a day in the future if the subscription is paused, cancelled or unpaid.
    fn reason_if_stopped(&self) -> Option<ChargeReason> {
        let hold = self.present_hold().filter(|_| !self.subscription.status.is_chargeable())?;
        Some(ChargeReason::Held { due_on: self.subscription.due_on, hold, next: None })
    }

    /// Returns the date of the planned cancellation if it is on or before the explained day, and no payment is charged
    /// before it.
    fn end_without_charge(&self) -> Option<NaiveDate> {
        // If a cancellation is planned, payments that fell due before the month of the cancellation are still charged.
        // So the planned cancellation is the reason only if no such payment is owed, or if the explained day is in the
        // future.
        let is_last = self.subscription.is_ending() || self.day.is_in_future();
        self.subscription.cancels_on().filter(|on| is_last && *on <= self.day.on)
    }

    /// Returns the outcome after the explained day of the payment that was due on `due_on`, or the plan for this
    /// payment. Returns `None` if the records show neither.
    fn later_outcome(&self, due_on: NaiveDate) -> Option<LaterOutcome> {
        let after = |at: DateTime<Utc>| Some(self.day.date_of(at)).filter(|date| *date > self.day.on);
        let subscription = self.subscription;
        if let Some(receipt) = self.records.receipts.iter().find(|receipt| receipt.due_on == due_on) {
            return after(receipt.processed_at).map(|on| LaterOutcome::Paid { on });
        }
        if let Some(waived) = self.records.waived.iter().find(|waived| waived.due_on == due_on) {
            // If the last retry fails, the payment can be waived on the same day. So a waiver on the explained day also
            // counts as a later outcome.
            let waived_on = self.day.date_of(waived.waived_at);
            return (waived_on >= self.day.on).then_some(LaterOutcome::Waived { on: waived_on, reason: waived.reason });
        }
        match &subscription.attempt {
            _ if subscription.due_on != due_on => None,
            Some(open) => Some(LaterOutcome::Open { since: open.claimed_at }),
            None => match self.present_hold() {
                Some(hold) => Some(LaterOutcome::Held { hold }),
                None => subscription.next_payment_on.map(|on| LaterOutcome::Due { on }),
            },
        }
    }

    /// Returns the attempt records of the payment that was due on `due_on`.
    fn attempts_for(&self, due_on: NaiveDate) -> impl Iterator<Item = &AttemptRecord> {
        self.records.attempts.iter().filter(move |attempt| attempt.due_on == due_on)
    }

    /// Returns every recorded due date, with the day on which its payment was paid or waived. That day is `None` for
    /// the current due date, whose payment is owed or not due yet.
    fn due_dates(&self) -> impl Iterator<Item = (NaiveDate, Option<NaiveDate>)> {
        let paid = self.records.receipts.iter().map(|r| (r.due_on, Some(self.day.date_of(r.processed_at))));
        let waived = self.records.waived.iter().map(|f| (f.due_on, Some(self.day.date_of(f.waived_at))));
        paid.chain(waived).chain([(self.subscription.due_on, None)])
    }
}
