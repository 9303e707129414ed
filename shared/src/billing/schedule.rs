//! The schedule: what is planned, as far as today can tell.

use chrono::NaiveDate;

use super::calendar::days_after;
use super::{LeadDays, Money, Period, Subscription};

/// A payment that is planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    pub due_on: NaiveDate,
    /// When the payment batch will look: the due date, or later for what is owed already.
    pub payment_on: NaiveDate,
    /// When the customer will be reminded; `None` if that is past.
    pub reminder_on: Option<NaiveDate>,
    /// What will be charged.
    pub amount: Money,
}

impl Subscription {
    /// The next payments, `months` of them at most: none while paused, unpaid or cancelled, and none from the month in
    /// which it will be cancelled.
    pub fn planned(&self, lead: LeadDays, today: NaiveDate, months: usize) -> Vec<Planned> {
        let reminder_on = |due_on: NaiveDate| {
            if due_on == self.due_on { self.next_reminder_on } else { (due_on > today).then(|| lead.before(due_on)) }
        };
        // The payment that is being made has the amount it was begun with.
        let open = |due_on| self.attempt.as_ref().filter(|attempt| attempt.due_on == due_on);
        let amount = |due_on| open(due_on).map_or_else(|| self.terms_in(Period::of(due_on)).price, |open| open.amount);
        let planned = |(due_on, payment_on)| Planned {
            due_on,
            payment_on,
            reminder_on: reminder_on(due_on),
            amount: amount(due_on),
        };
        self.payments_ahead(today).map(planned).take(months).collect()
    }

    /// The due dates that are planned, each with the date on which the payment batch will look. They do not end by
    /// themselves.
    pub(crate) fn payments_ahead(&self, today: NaiveDate) -> impl Iterator<Item = (NaiveDate, NaiveDate)> {
        let is_charged = |due_on: NaiveDate| self.cancel_from.is_none_or(|from| Period::of(due_on) < from);
        let next_on = self.next_payment_on.filter(|_| self.status.is_chargeable());
        let after = move |&(due_on, payment_on): &(NaiveDate, NaiveDate)| {
            let due_on = self.due_after(due_on, today);
            Some((due_on, due_on.max(days_after(payment_on.max(today), 1))))
        };
        let first = next_on.map(|payment_on| (self.due_on, payment_on));
        std::iter::successors(first, after).take_while(move |(due_on, _)| is_charged(*due_on))
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
}
