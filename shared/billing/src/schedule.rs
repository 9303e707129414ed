//! The planned payments of a subscription.

use chrono::NaiveDate;

use super::{LeadDays, Money, Period, Subscription};

/// A future payment of a subscription, according to its present state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedPayment {
    pub due_on: NaiveDate,
    /// The date on which the payment batch will charge the payment: the due date, or a later date for an owed payment.
    pub payment_on: NaiveDate,
    /// The date of the reminder; `None` if no reminder will be sent any more.
    pub reminder_on: Option<NaiveDate>,
    /// The price of the month, or the amount of the open attempt.
    pub amount: Money,
}

impl Subscription {
    /// Returns the next payments, at most `months` of them. There are none while the subscription is paused, unpaid or
    /// cancelled, and none from the month of a planned cancellation on.
    pub fn planned_payments(&self, lead: LeadDays, today: NaiveDate, months: usize) -> Vec<PlannedPayment> {
        let reminder_on = |due_on: NaiveDate| {
            if due_on == self.due_on { self.next_reminder_on } else { (due_on > today).then(|| lead.before(due_on)) }
        };
        // An open attempt has the amount that its claim froze.
        let open = |due_on| self.attempt.as_ref().filter(|attempt| attempt.due_on == due_on);
        let amount =
            |due_on| open(due_on).map_or_else(|| self.terms_in(Period::from_day(due_on)).price, |open| open.amount);
        let planned = |(due_on, payment_on)| PlannedPayment {
            due_on,
            payment_on,
            reminder_on: reminder_on(due_on),
            amount: amount(due_on),
        };
        self.planned_payment_dates(today).map(planned).take(months).collect()
    }

    /// Returns the planned due dates, each with the date on which the payment batch will charge it. The iterator is
    /// empty if the subscription is not charged any more. The iterator ends at a planned cancellation; without a
    /// planned cancellation, it never ends.
    pub fn planned_payment_dates(&self, today: NaiveDate) -> impl Iterator<Item = (NaiveDate, NaiveDate)> + use<> {
        let next_on = self.next_payment_on.filter(|_| self.status.is_chargeable());
        self.payment_schedule().planned_payment_dates(next_on, today)
    }
}
