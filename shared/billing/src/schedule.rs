//! The schedule: what is planned, as far as today can tell.

use chrono::NaiveDate;

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
    pub fn payments_ahead(&self, today: NaiveDate) -> impl Iterator<Item = (NaiveDate, NaiveDate)> + use<> {
        let next_on = self.next_payment_on.filter(|_| self.status.is_chargeable());
        self.course().payments_ahead(next_on, today)
    }
}
