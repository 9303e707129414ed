//! Why a subscription was charged on a day, or was not: what its records say, and no more than they say.
//!
//! Only its present status is recorded, not since when. What the runs of the day did is asked elsewhere: it matters
//! only when a payment was owed and nothing came of it.

use chrono::{DateTime, NaiveDate, Utc};

use billing::{
    Attempt, AttemptEnd, AttemptRecord, Period, Receipt, Records, Status, Subscription, WaivedPeriod, WaivedReason,
};
use days::AskedDay;

/// Why it was charged on that day, or was not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// It was charged.
    Charged(Receipt),
    /// A payment had been begun, and what came of it is still not known.
    Open(Attempt),
    /// A payment was tried, in vain.
    Tried { attempt: AttemptRecord, next: Option<Next> },
    /// What was owed had been tried in vain before, and was not tried on that day.
    BetweenTries { last: AttemptRecord, next: Option<Next> },
    /// A payment was owed, and nothing came of it: what the runs of the day say is to be seen.
    Owed { due_on: NaiveDate, next: Option<Next> },
    /// The month's payment had been made before.
    Paid(Receipt),
    /// The month's payment is waived.
    Waived(WaivedPeriod),
    /// It is paused, cancelled or unpaid now, with a payment that fell due by that day.
    Stopped { due_on: NaiveDate, status: Status, since: Option<NaiveDate> },
    /// A payment was owed, or will be, and its payment method is disputed.
    Disputed { due_on: NaiveDate, since: NaiveDate },
    /// It is to be cancelled instead of being charged on this due date.
    Ending { on: NaiveDate },
    /// Its first payment fell due later.
    NotBegun { created_on: NaiveDate, first_due_on: NaiveDate },
    /// Nothing was due. When something is next, if anything is.
    NotDue { next_on: Option<NaiveDate> },
    /// As far as today can tell, it will be charged.
    Planned { due_on: NaiveDate },
    /// The month's payment is neither made nor waived nor owed.
    Unrecorded { period: Period },
    /// What was recorded of that day may have expired.
    Expired,
}

impl Why {
    /// The due date of the payment it speaks of, if it speaks of one.
    pub fn due_on(&self) -> Option<NaiveDate> {
        match self {
            Why::Charged(receipt) | Why::Paid(receipt) => Some(receipt.due_on),
            Why::Open(open) => Some(open.due_on),
            Why::Tried { attempt, .. } | Why::BetweenTries { last: attempt, .. } => Some(attempt.due_on),
            Why::Waived(waived) => Some(waived.due_on),
            Why::Owed { due_on, .. }
            | Why::Stopped { due_on, .. }
            | Why::Disputed { due_on, .. }
            | Why::Planned { due_on } => Some(*due_on),
            Why::Ending { on } => Some(*on),
            Why::NotBegun { .. } | Why::NotDue { .. } | Why::Unrecorded { .. } | Why::Expired => None,
        }
    }
}

/// What came of a payment after the day that is asked about, or will.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    Paid {
        on: NaiveDate,
    },
    Waived {
        on: NaiveDate,
        reason: WaivedReason,
    },
    /// It was begun later, and what came of it is still not known.
    Open {
        since: DateTime<Utc>,
    },
    /// It will be tried, at the next run if the date has passed.
    Due {
        on: NaiveDate,
    },
    Stopped {
        status: Status,
        since: Option<NaiveDate>,
    },
}

/// Why `subscription`, as it is now, was charged on a day, or was not, by its `records`.
pub fn why(subscription: &Subscription, records: &Records, day: &AskedDay) -> Why {
    let case = Case { subscription, records, day };
    if day.is_ahead() {
        return case.planned();
    }
    case.happened().or_else(|| case.owed()).or_else(|| case.settled_before()).unwrap_or_else(|| case.not_due())
}

struct Case<'a> {
    subscription: &'a Subscription,
    records: &'a Records,
    day: &'a AskedDay,
}

impl Case<'_> {
    /// What is recorded of that very day, or was open on it.
    fn happened(&self) -> Option<Why> {
        let is_that_day = |at| self.day.date_of(at) == self.day.on;
        if let Some(receipt) = self.records.receipts.iter().find(|receipt| is_that_day(receipt.processed_at)) {
            return Some(Why::Charged(receipt.clone()));
        }
        let open = self.subscription.attempt.as_ref();
        if let Some(open) = open.filter(|open| self.day.date_of(open.claimed_at) <= self.day.on) {
            return Some(Why::Open(open.clone()));
        }
        let tried = self.records.attempts.iter().rfind(|attempt| is_that_day(attempt.processed_at))?;
        Some(Why::Tried { attempt: tried.clone(), next: self.next(tried.due_on) })
    }

    /// What was owed on that day: the month's own payment, or else the oldest one.
    fn owed(&self) -> Option<Why> {
        let (on, period) = (self.day.on, Period::of(self.day.on));
        let owed = self.due_dates().filter(|(due_on, settled_on)| *due_on <= on && settled_on.is_none_or(|at| at > on));
        let due_on = owed.map(|(due_on, _)| due_on).min_by_key(|due_on| (Period::of(*due_on) != period, *due_on))?;
        let next = self.next(due_on);
        if let Some(Next::Waived { .. }) = next {
            return self.records.waived.iter().find(|waived| waived.due_on == due_on).cloned().map(Why::Waived);
        }
        let was_tried_later = self.attempts_at(due_on).any(|attempt| self.day.date_of(attempt.processed_at) > on);
        let went_on = was_tried_later || matches!(next, Some(Next::Paid { .. } | Next::Open { .. }));
        if !went_on && let Some(stopped) = self.stopped() {
            return Some(stopped);
        }
        if let Some(disputed) = self.disputed(due_on).filter(|_| !went_on) {
            return Some(disputed);
        }
        let last = self.attempts_at(due_on).filter(|attempt| self.day.date_of(attempt.processed_at) < on).last();
        let is_due_later = matches!(next, Some(Next::Due { on: next_on }) if next_on > on);
        match last {
            // What was rejected is due again on the day after.
            Some(last) if last.outcome != AttemptEnd::Rejected && (went_on || is_due_later) => {
                Some(Why::BetweenTries { last: last.clone(), next })
            }
            _ if self.day.may_have_expired() && !went_on => Some(Why::Expired),
            _ => Some(Why::Owed { due_on, next }),
        }
    }

    /// The month's own payment, done with before.
    fn settled_before(&self) -> Option<Why> {
        let (on, period) = (self.day.on, Period::of(self.day.on));
        let is_of_it = |due_on, at| Period::of(due_on) == period && self.day.date_of(at) <= on;
        let paid = self.records.receipts.iter().find(|receipt| is_of_it(receipt.due_on, receipt.processed_at));
        let waived = self.records.waived.iter().find(|waived| is_of_it(waived.due_on, waived.waived_at));
        paid.cloned().map(Why::Paid).or_else(|| waived.cloned().map(Why::Waived))
    }

    fn not_due(&self) -> Why {
        let (on, period, subscription) = (self.day.on, Period::of(self.day.on), self.subscription);
        if on < subscription.first_due_on {
            return self.not_begun();
        }
        if self.day.may_have_expired() {
            return Why::Expired;
        }
        let is_ahead = |due_on: &NaiveDate| *due_on > on;
        let is_of_this_month = self.due_dates().any(|(due_on, _)| is_ahead(&due_on) && Period::of(due_on) == period);
        let paid = self.records.receipts.iter().map(|receipt| receipt.due_on);
        let next_on = paid.chain([subscription.due_on]).filter(is_ahead).min();
        if !is_of_this_month && subscription.payment_day.due_in(period) <= on {
            return Why::Unrecorded { period };
        }
        let will_be = subscription.status.is_chargeable() && !subscription.is_ending();
        Why::NotDue { next_on: next_on.filter(|next_on| *next_on != subscription.due_on || will_be) }
    }

    /// What will be on a day ahead, as far as today can tell.
    fn planned(&self) -> Why {
        let (on, today) = (self.day.on, self.day.today);
        let planned = self.subscription.payments_ahead(today).find(|(_, payment_on)| *payment_on >= on);
        match planned {
            Some((due_on, payment_on)) if payment_on == on => self.disputed(due_on).unwrap_or(Why::Planned { due_on }),
            _ if on < self.subscription.first_due_on && self.subscription.status.is_chargeable() => self.not_begun(),
            _ => self
                .settled_before()
                .or_else(|| self.stopped())
                .unwrap_or(Why::NotDue { next_on: planned.map(|(_, payment_on)| payment_on) }),
        }
    }

    /// That its payment method was disputed by that day, and is still.
    fn disputed(&self, due_on: NaiveDate) -> Option<Why> {
        let since = self.day.date_of(self.subscription.disputed_at?);
        (since <= self.day.on).then_some(Why::Disputed { due_on, since })
    }

    fn not_begun(&self) -> Why {
        let created_on = self.day.date_of(self.subscription.created_at);
        Why::NotBegun { created_on, first_due_on: self.subscription.first_due_on }
    }

    /// Why what is due by that day is not charged any more.
    fn stopped(&self) -> Option<Why> {
        let subscription = self.subscription;
        let (due_on, status) = (subscription.due_on, subscription.status);
        if !status.is_chargeable() {
            return Some(Why::Stopped { due_on, status, since: self.unpaid_since() });
        }
        // What fell due before the month it ends in is charged still.
        let is_last = subscription.is_ending() || self.day.is_ahead();
        subscription.cancels_on().filter(|on| is_last && *on <= self.day.on).map(|on| Why::Ending { on })
    }

    fn unpaid_since(&self) -> Option<NaiveDate> {
        self.subscription.unpaid_since.filter(|_| self.subscription.status == Status::Unpaid)
    }

    /// What came of the payment due on `due_on` after that day.
    fn next(&self, due_on: NaiveDate) -> Option<Next> {
        let after = |at: DateTime<Utc>| Some(self.day.date_of(at)).filter(|date| *date > self.day.on);
        let subscription = self.subscription;
        if let Some(receipt) = self.records.receipts.iter().find(|receipt| receipt.due_on == due_on) {
            return after(receipt.processed_at).map(|on| Next::Paid { on });
        }
        if let Some(waived) = self.records.waived.iter().find(|waived| waived.due_on == due_on) {
            // What ends with its last try is waived on that very day.
            let waived_on = self.day.date_of(waived.waived_at);
            return (waived_on >= self.day.on).then_some(Next::Waived { on: waived_on, reason: waived.reason });
        }
        match &subscription.attempt {
            _ if subscription.due_on != due_on => None,
            Some(open) => Some(Next::Open { since: open.claimed_at }),
            None if subscription.status.is_chargeable() => subscription.next_payment_on.map(|on| Next::Due { on }),
            None => Some(Next::Stopped { status: subscription.status, since: self.unpaid_since() }),
        }
    }

    fn attempts_at(&self, due_on: NaiveDate) -> impl Iterator<Item = &AttemptRecord> {
        self.records.attempts.iter().filter(move |attempt| attempt.due_on == due_on)
    }

    /// Every due date that is known, with the day on which it was done with.
    fn due_dates(&self) -> impl Iterator<Item = (NaiveDate, Option<NaiveDate>)> {
        let paid = self.records.receipts.iter().map(|r| (r.due_on, Some(self.day.date_of(r.processed_at))));
        let waived = self.records.waived.iter().map(|f| (f.due_on, Some(self.day.date_of(f.waived_at))));
        paid.chain(waived).chain([(self.subscription.due_on, None)])
    }
}
