//! The terms: the payment day and the price of a subscription, and the month from which they apply.
//!
//! A month that has fallen due keeps its due date and its price. A change applies from the first month whose due date
//! is after today, both with the old payment day and with the new payment day. If this first month is not the current
//! due month but a later one, the change is stored in `waiting_terms`, and is applied when the due date moves to this
//! month.

use chrono::NaiveDate;

use crate::settings::policy::LeadDays;
use crate::subscriptions::subscription::{Subscription, SubscriptionTerms};
use crate::values::calendar::{PaymentDay, Period};
use crate::values::money::Money;

/// A change of the price or the payment day that waits for a later month.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitingChange {
    /// The first due date to which the change applies.
    pub first_due_on: NaiveDate,
    /// The new price; `None` if it stays the same.
    pub price: Option<Money>,
    /// The new payment day; `None` if it stays the same.
    pub payment_day: Option<PaymentDay>,
}

impl Subscription {
    /// Returns the changes that wait for a later month, the earliest first.
    pub fn waiting_changes(&self) -> Vec<WaitingChange> {
        let mut before = (self.price, self.payment_day);
        let change = |terms: &SubscriptionTerms| {
            let (price, payment_day) = std::mem::replace(&mut before, (terms.price, terms.payment_day));
            WaitingChange {
                first_due_on: self.due_in(terms.from),
                price: (terms.price != price).then_some(terms.price),
                payment_day: (terms.payment_day != payment_day).then_some(terms.payment_day),
            }
        };
        let changes = self.waiting_terms.iter().map(change);
        changes.filter(|change| change.price.is_some() || change.payment_day.is_some()).collect()
    }

    /// Returns the terms that apply after all waiting terms have taken effect. If there are no waiting terms, returns
    /// the current terms, which apply from the month of `due_on`.
    pub fn latest_terms(&self) -> SubscriptionTerms {
        let current = SubscriptionTerms { from: self.due_period(), payment_day: self.payment_day, price: self.price };
        self.waiting_terms.last().copied().unwrap_or(current)
    }

    /// Returns the terms (payment day and price) of the month `period`: the latest waiting terms that begin in or
    /// before `period`. If there are no such terms, returns the current terms.
    pub fn terms_in(&self, period: Period) -> SubscriptionTerms {
        let waiting = self.waiting_terms.iter().rfind(|terms| terms.from <= period);
        let in_force = SubscriptionTerms { from: period, payment_day: self.payment_day, price: self.price };
        waiting.map_or(in_force, |terms| SubscriptionTerms { from: period, ..*terms })
    }

    /// Returns the due date in the month `period`.
    pub fn due_in(&self, period: Period) -> NaiveDate {
        if period == self.due_period() { self.due_on } else { self.terms_in(period).payment_day.due_in(period) }
    }

    /// Returns the first due date that is after `day` and not before `due_on`.
    pub(crate) fn first_due_after(&self, day: NaiveDate) -> NaiveDate {
        let first = self.due_in(self.due_period().max(Period::from_day(day)));
        if first > day { first } else { self.due_in(Period::from_day(first).next()) }
    }

    /// Returns the due date that follows the due date `paid` if the payment of `paid` succeeds on `today`. Usually,
    /// this is the due date of the next month. For an unpaid subscription, this is the first due date after `today`,
    /// because the months between the two due dates are waived. If a planned cancellation takes effect before that
    /// date, this is the due date on which the cancellation takes effect, because no later month was owed.
    pub(crate) fn due_after(&self, paid: NaiveDate, today: NaiveDate) -> NaiveDate {
        let next = self.due_in(Period::from_day(paid).next());
        if self.unpaid_since.is_none() {
            return next;
        }
        let after_today = self.first_due_after(today);
        let after_waived = self.cancel_from.map_or(after_today, |from| self.due_in(from).min(after_today));
        next.max(after_waived)
    }

    /// Returns the latest due date that is not after `today`; `None` if `due_on` is after `today`.
    pub(crate) fn last_due_by(&self, today: NaiveDate) -> Option<NaiveDate> {
        let in_month = self.due_in(Period::from_day(today));
        let last = if in_month <= today { in_month } else { self.due_in(Period::from_day(today).previous()) };
        (self.due_on <= today).then(|| last.max(self.due_on))
    }

    /// Moves the due date to the month `period`: applies the terms of this month, and removes the date of the first
    /// decline, which belongs to the former due date.
    pub(crate) fn move_to_period(&mut self, period: Period) {
        let SubscriptionTerms { payment_day, price, .. } = self.terms_in(period);
        self.due_on = self.due_in(period);
        (self.payment_day, self.price) = (payment_day, price);
        self.waiting_terms.retain(|terms| terms.from > period);
        self.first_declined_on = None;
    }

    /// Sets a new price, which applies from the first month that has not fallen due.
    pub(crate) fn set_price(&mut self, price: Money, lead: LeadDays, today: NaiveDate) {
        let (from, before) = (self.first_changeable_month(|due_on, _| due_on > today), self.price);
        self.change_terms_from(from, |terms| terms.price = price);
        if self.price != before {
            self.plan_reminder(lead, today);
        }
    }

    /// Sets a new payment day, which applies from the first month whose due date is after `today`, both with the old
    /// and with the new payment day.
    pub(crate) fn set_payment_day(&mut self, day: PaymentDay, lead: LeadDays, today: NaiveDate) {
        let from = self.first_changeable_month(|due_on, period| due_on > today && day.due_in(period) > today);
        self.change_terms_from(from, |terms| terms.payment_day = day);
        let moved = day.due_in(from);
        if from != self.due_period() || moved == self.due_on {
            return;
        }
        if self.last_payment_at.is_none() && self.first_due_on == self.due_on {
            self.first_due_on = moved;
        }
        self.due_on = moved;
        if self.status.is_chargeable() {
            self.schedule_payment_and_reminder(lead, today);
        }
    }

    /// Returns the first month whose terms may change: the first month for which `is_changeable` returns `true`. The
    /// search begins with the due month, or with the month after it if an attempt for the due month is open or was
    /// declined. The arguments of `is_changeable` are the due date of the month, and the month.
    fn first_changeable_month(&self, is_changeable: impl Fn(NaiveDate, Period) -> bool) -> Period {
        let due_next = self.due_period();
        let is_untried = self.attempt.is_none() && self.failed_attempts == 0;
        let first = if is_untried { due_next } else { due_next.next() };
        let mut months = std::iter::successors(Some(first), |period| Some(period.next()));
        months.find(|period| is_changeable(self.due_in(*period), *period)).unwrap_or(first)
    }

    /// Applies `change` to the terms of the month `from` and of all later months.
    fn change_terms_from(&mut self, from: Period, change: impl Fn(&mut SubscriptionTerms)) {
        let due_next = self.due_period();
        let mut all: Vec<SubscriptionTerms> = self.waiting_terms.clone();
        let place = all.partition_point(|terms| terms.from < from);
        if all.get(place).is_none_or(|terms| terms.from != from) {
            all.insert(place, self.terms_in(from));
        }
        all.iter_mut().skip(place).for_each(change);
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
