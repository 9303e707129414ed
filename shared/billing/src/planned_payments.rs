//! The planned payments of a subscription.

use chrono::NaiveDate;

use super::{LeadDays, Money, Period, Subscription};

/// A future payment of a subscription, computed from the present state of the subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedPayment {
    pub due_on: NaiveDate,
    /// The date on which the payment batch will charge the payment: the due date, or a later date for an owed payment.
    pub payment_on: NaiveDate,
    /// The date of the reminder; `None` if no reminder will be sent any more.
    pub reminder_on: Option<NaiveDate>,
    /// The price of the month. If the payment has an open attempt, the amount of this attempt.
    pub amount: Money,
}

impl Subscription {
    /// Returns the next planned payments, at most `months` payments. A subscription that is paused, unpaid or cancelled
    /// has no planned payments. If a cancellation is planned, the last payment is that of the month before the
    /// cancellation.
    pub fn planned_payments(&self, lead: LeadDays, today: NaiveDate, months: usize) -> Vec<PlannedPayment> {
        let reminder_on = |due_on: NaiveDate| {
            if due_on == self.due_on { self.next_reminder_on } else { (due_on > today).then(|| lead.before(due_on)) }
        };
        // The amount of an open attempt was fixed when a worker claimed the attempt.
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

    /// Returns the planned due dates, each with the date on which the payment batch will charge the payment. The
    /// iterator is empty if the subscription is not charged any more. The iterator ends at a planned cancellation.
    /// Without a planned cancellation, the iterator never ends.
    pub fn planned_payment_dates(&self, today: NaiveDate) -> impl Iterator<Item = (NaiveDate, NaiveDate)> + use<> {
        let next_on = self.next_payment_on.filter(|_| self.status.is_chargeable());
        self.payment_schedule().planned_payment_dates(next_on, today)
    }
}
