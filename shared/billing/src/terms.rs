//! Terms: the payment day and the price, and from which month on they count.
//!
//! What has fallen due keeps its date and its price. A change counts from the first month whose due date, by the old day
//! and the new, lies after today. If that is not the month that is due next, it waits in a short list, and whatever moves
//! the due date applies it.

use chrono::NaiveDate;

use super::calendar::days_after;
use super::{LeadDays, Money, PaymentDay, Period, Subscription, Terms};

/// What is known of the due dates of a subscription: enough to plan them, as the indexes show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Course {
    /// The earliest due date that is neither paid nor waived, with its terms.
    pub due_on: NaiveDate,
    pub payment_day: PaymentDay,
    pub price: Money,
    /// Terms of later months, the earliest first.
    pub waiting_terms: Vec<Terms>,
    /// The first month that is not owed any more.
    pub cancel_from: Option<Period>,
    /// Once paid, the months that have fallen due since then are waived.
    pub unpaid_since: Option<NaiveDate>,
}

impl Course {
    /// The terms of `period`: those that wait for it or for a month before it, or else those of the due date.
    pub fn terms_in(&self, period: Period) -> Terms {
        let waiting = self.waiting_terms.iter().rfind(|terms| terms.from <= period);
        let in_force = Terms { from: period, payment_day: self.payment_day, price: self.price };
        waiting.map_or(in_force, |terms| Terms { from: period, ..*terms })
    }

    /// The due date of `period`.
    pub fn due_in(&self, period: Period) -> NaiveDate {
        if period == Period::of(self.due_on) { self.due_on } else { self.terms_in(period).payment_day.due_in(period) }
    }

    /// The first due date after `day`, from the one that is due next on.
    pub(super) fn first_due_after(&self, day: NaiveDate) -> NaiveDate {
        let first = self.due_in(Period::of(self.due_on).max(Period::of(day)));
        if first > day { first } else { self.due_in(Period::of(first).next()) }
    }

    /// The due date that follows `paid`, once that is paid on `today`. When it had been unpaid, the months in between
    /// are waived.
    pub(crate) fn due_after(&self, paid: NaiveDate, today: NaiveDate) -> NaiveDate {
        let next = self.due_in(Period::of(paid).next());
        match self.unpaid_since {
            Some(_) => next.max(self.first_due_after(today)),
            None => next,
        }
    }

    /// The due dates that are planned from `next_payment_on`, each with the date on which the payment batch will look. They
    /// do not end by themselves.
    pub(crate) fn payments_ahead(
        self,
        next_payment_on: Option<NaiveDate>,
        today: NaiveDate,
    ) -> impl Iterator<Item = (NaiveDate, NaiveDate)> + use<> {
        let cancel_from = self.cancel_from;
        let first = next_payment_on.map(|payment_on| (self.due_on, payment_on));
        let after = move |&(due_on, payment_on): &(NaiveDate, NaiveDate)| {
            let due_on = self.due_after(due_on, today);
            Some((due_on, due_on.max(days_after(payment_on.max(today), 1))))
        };
        let is_charged = move |due_on: NaiveDate| cancel_from.is_none_or(|from| Period::of(due_on) < from);
        std::iter::successors(first, after).take_while(move |(due_on, _)| is_charged(*due_on))
    }
}

impl Subscription {
    /// What is known of its due dates.
    pub fn course(&self) -> Course {
        let Self { due_on, payment_day, price, cancel_from, unpaid_since, .. } = *self;
        Course { due_on, payment_day, price, waiting_terms: self.waiting_terms.clone(), cancel_from, unpaid_since }
    }

    /// The terms of `period`, as [`Course::terms_in`].
    pub fn terms_in(&self, period: Period) -> Terms {
        self.course().terms_in(period)
    }

    /// The due date of `period`.
    pub fn due_in(&self, period: Period) -> NaiveDate {
        self.course().due_in(period)
    }

    /// The first due date after `day`, from the one that is due next on.
    pub(super) fn first_due_after(&self, day: NaiveDate) -> NaiveDate {
        self.course().first_due_after(day)
    }

    /// The last due date that has come by `today`, if the one that is due next has.
    pub(super) fn last_due_by(&self, today: NaiveDate) -> Option<NaiveDate> {
        let in_month = self.due_in(Period::of(today));
        let last = if in_month <= today { in_month } else { self.due_in(Period::of(today).previous()) };
        (self.due_on <= today).then(|| last.max(self.due_on))
    }

    /// `period` is due next: under its own terms, and never declined yet.
    pub(super) fn move_to(&mut self, period: Period) {
        let Terms { payment_day, price, .. } = self.terms_in(period);
        self.due_on = self.due_in(period);
        (self.payment_day, self.price) = (payment_day, price);
        self.waiting_terms.retain(|terms| terms.from > period);
        self.first_declined_on = None;
    }

    /// A new price, from the first month that has not fallen due.
    pub(super) fn pay_from_next(&mut self, price: Money, lead: LeadDays, today: NaiveDate) {
        let (from, before) = (self.first_month(|due_on, _| due_on > today), self.price);
        self.set_terms(from, |terms| terms.price = price);
        if self.price != before {
            self.plan_reminder(lead, today);
        }
    }

    /// A new payment day, from the first month whose due date lies ahead by the old day and by the new.
    pub(super) fn move_payments(&mut self, day: PaymentDay, lead: LeadDays, today: NaiveDate) {
        let from = self.first_month(|due_on, period| due_on > today && day.due_in(period) > today);
        self.set_terms(from, |terms| terms.payment_day = day);
        let moved = day.due_in(from);
        if from != Period::of(self.due_on) || moved == self.due_on {
            return;
        }
        if self.last_payment_at.is_none() && self.first_due_on == self.due_on {
            self.first_due_on = moved;
        }
        self.due_on = moved;
        if self.status.is_chargeable() {
            self.schedule(lead, today);
        }
    }

    /// The first month, from the one that is due next on, that no attempt was made for and that is as `is_open` says.
    fn first_month(&self, is_open: impl Fn(NaiveDate, Period) -> bool) -> Period {
        let due_next = Period::of(self.due_on);
        let is_untried = self.attempt.is_none() && self.failed_attempts == 0;
        let first = if is_untried { due_next } else { due_next.next() };
        let mut months = std::iter::successors(Some(first), |period| Some(period.next()));
        months.find(|period| is_open(self.due_in(*period), *period)).unwrap_or(first)
    }

    /// Changes the terms from the month `from` on; what waits for later months keeps what is not changed.
    fn set_terms(&mut self, from: Period, set: impl Fn(&mut Terms)) {
        let due_next = Period::of(self.due_on);
        let mut all: Vec<Terms> = self.waiting_terms.clone();
        let place = all.partition_point(|terms| terms.from < from);
        if all.get(place).is_none_or(|terms| terms.from != from) {
            all.insert(place, self.terms_in(from));
        }
        all.iter_mut().skip(place).for_each(set);
        let mut last = self.terms_in(due_next);
        self.waiting_terms.clear();
        for terms in all {
            let is_other = (terms.payment_day, terms.price) != (last.payment_day, last.price);
            if terms.from == due_next {
                (self.payment_day, self.price) = (terms.payment_day, terms.price);
            } else if is_other {
                self.waiting_terms.push(terms);
            }
            last = terms;
        }
    }
}
