//! What a customer or an operator does with a subscription. Every transition is a pure function of the item and the day,
//! and doing it twice is doing it once.
//!
//! An attempt that is open is never touched here: it has its amount, payment method and due date from the claim on, and
//! is resolved first. What is changed meanwhile counts from the next attempt.

use chrono::NaiveDate;

use super::{EmailAddress, Label, LeadDays, MoneyError, PaymentDay, PaymentMethod, Period, Status, Subscription};

/// What is to be different; what is `None` stays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Minor units of the subscription's currency.
    pub amount: Option<i64>,
    pub payment_day: Option<PaymentDay>,
    pub payment_method: Option<PaymentMethod>,
    pub product_name: Option<Label>,
    /// `Some(None)`: mail goes to the account's address again.
    pub email: Option<Option<EmailAddress>>,
}

/// Why a transition was refused. The subscription is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("a subscription that is {status} cannot be {action}")]
    Status { status: Status, action: &'static str },
    #[error("a subscription that is to be cancelled cannot be paused; undo the cancellation first")]
    Ending,
    #[error("a subscription that is {status} has no period to end; cancel it now")]
    NoPeriod { status: Status },
    #[error("it was to be cancelled on {on}, and that day has come")]
    Ended { on: NaiveDate },
    #[error(
        "a payment of {due_on} is being made, and the next one fell due in the pause; resume it once that is settled"
    )]
    Paying { due_on: NaiveDate },
    #[error(transparent)]
    Amount(#[from] MoneyError),
    #[error("must not lie before {today}, the day of creation; {named} does")]
    FirstPaymentPast { named: NaiveDate, today: NaiveDate },
    #[error("must not lie after {latest}; {named} does")]
    FirstPaymentFar { named: NaiveDate, latest: NaiveDate },
    #[error("must fall on the payment day: for that month {expected}, not {named}")]
    FirstPaymentDay { named: NaiveDate, expected: NaiveDate },
}

impl Subscription {
    /// Makes `changes`, all of them or none. An amount or a date changed after its reminder is reminded again.
    ///
    /// # Errors
    /// [`Refusal::Status`] once cancelled; [`Refusal::Amount`].
    pub fn change(&self, changes: &Changes, lead: LeadDays, today: NaiveDate) -> Result<Subscription, Refusal> {
        self.refuse_if(&[Status::Cancelled], "changed")?;
        let mut changed = self.clone();
        if let Some(name) = &changes.product_name {
            changed.product_name = name.clone();
        }
        if let Some(email) = &changes.email {
            changed.email = email.clone();
        }
        if let Some(minor) = changes.amount {
            changed.price = self.price.currency().price(minor)?;
            if changed.price != self.price {
                changed.plan_reminder(lead, today);
            }
        }
        if let Some(day) = changes.payment_day {
            changed.move_payments(day, lead, today);
        }
        if let Some(method) = &changes.payment_method {
            changed.pay_with(method, today);
        }
        Ok(changed)
    }

    /// Stops payments until resumed. Months whose due date falls while paused are not owed. An open attempt is
    /// resolved first: the subscription stays in the payment index until then.
    ///
    /// # Errors
    /// [`Refusal::Status`] while past due, unpaid or cancelled; [`Refusal::Ending`].
    pub fn pause(&self) -> Result<Subscription, Refusal> {
        self.refuse_if(&[Status::PastDue, Status::Unpaid, Status::Cancelled], "paused")?;
        if self.cancel_from.is_some() {
            return Err(Refusal::Ending);
        }
        Ok(self.stopped(Status::Paused))
    }

    /// Takes payments up again on the first payment day not before `today` and not before the old due date.
    /// An attempt that is still open decides on its own due date first.
    ///
    /// # Errors
    /// [`Refusal::Status`] while past due, unpaid or cancelled; [`Refusal::Paying`] while an attempt is open and the
    /// month after it fell due in the pause.
    pub fn resume(&self, lead: LeadDays, today: NaiveDate) -> Result<Subscription, Refusal> {
        self.refuse_if(&[Status::PastDue, Status::Unpaid, Status::Cancelled], "resumed")?;
        if self.status != Status::Paused {
            return Ok(self.clone());
        }
        let mut resumed = Subscription { status: Status::Active, ..self.clone() };
        match &self.attempt {
            // Settled, it would go on with the month after, which is not owed.
            Some(attempt) if self.due_after(attempt.due_on, today) < today => {
                return Err(Refusal::Paying { due_on: attempt.due_on });
            }
            Some(_) => {}
            None => {
                if self.due_on < today {
                    resumed.due_on = self.payment_day.first_from(today);
                }
                resumed.schedule(lead, today);
            }
        }
        Ok(resumed)
    }

    /// Ends it for good, now. An open attempt is resolved first.
    pub fn cancel(&self) -> Subscription {
        Subscription { cancel_from: None, ..self.stopped(Status::Cancelled) }
    }

    /// Ends it when the next due date comes, uncharged. What is owed on `today` is charged still.
    ///
    /// # Errors
    /// [`Refusal::NoPeriod`] while paused or unpaid.
    pub fn cancel_at_period_end(&self, today: NaiveDate) -> Result<Subscription, Refusal> {
        if self.cancel_from.is_some() {
            return Ok(self.clone());
        }
        if matches!(self.status, Status::Paused | Status::Unpaid) {
            return Err(Refusal::NoPeriod { status: self.status });
        }
        let mut ending = self.clone();
        if self.status != Status::Cancelled {
            let is_ahead = self.due_on > today && self.attempt.is_none();
            let next_on = if is_ahead { self.due_on } else { self.payment_day.first_after(today.max(self.due_on)) };
            // A payment day that was changed may come again in a month that is paid.
            let next =
                if is_ahead { Period::of(next_on) } else { Period::of(next_on).max(Period::of(self.due_on).next()) };
            ending.cancel_from = Some(next);
            if ending.is_ending() {
                ending.next_reminder_on = None;
            }
        }
        Ok(ending)
    }

    /// Undoes [`Subscription::cancel_at_period_end`]; its payment is reminded of again.
    ///
    /// # Errors
    /// [`Refusal::Status`] once cancelled; [`Refusal::Ended`] once the day has come.
    pub fn uncancel(&self, lead: LeadDays, today: NaiveDate) -> Result<Subscription, Refusal> {
        self.refuse_if(&[Status::Cancelled], "taken up again; create a new one")?;
        if self.is_ending() && self.due_on <= today {
            return Err(Refusal::Ended { on: self.due_on });
        }
        let mut kept = Subscription { cancel_from: None, ..self.clone() };
        if self.is_ending() {
            kept.plan_reminder(lead, today);
        }
        Ok(kept)
    }

    /// The due date on which it will be cancelled, uncharged.
    pub fn cancels_on(&self) -> Option<NaiveDate> {
        let from = self.cancel_from?;
        Some(if self.is_ending() { self.due_on } else { self.payment_day.due_in(from) })
    }

    /// Whether the current due date is the one that ends it.
    pub fn is_ending(&self) -> bool {
        self.cancel_from.is_some_and(|from| from <= Period::of(self.due_on))
    }

    /// Enters both indexes for the current due date.
    fn schedule(&mut self, lead: LeadDays, today: NaiveDate) {
        self.next_payment_on = Some(self.due_on);
        self.plan_reminder(lead, today);
    }

    /// Enters the reminder index, if there will be a payment to remind of.
    fn plan_reminder(&mut self, lead: LeadDays, today: NaiveDate) {
        let is_planned =
            self.status == Status::Active && self.attempt.is_none() && self.due_on >= today && !self.is_ending();
        self.next_reminder_on = is_planned.then(|| lead.before(self.due_on));
    }

    /// The current due date moves within its month if both the old and the new one are still ahead and no attempt is
    /// open; otherwise the new day counts from the next period.
    fn move_payments(&mut self, day: PaymentDay, lead: LeadDays, today: NaiveDate) {
        self.payment_day = day;
        let (old, moved) = (self.due_on, day.due_in(Period::of(self.due_on)));
        if moved != old && old > today && moved > today && self.attempt.is_none() {
            self.due_on = moved;
            if self.last_payment_at.is_none() && self.first_due_on == old {
                self.first_due_on = moved;
            }
            if self.status == Status::Active {
                self.schedule(lead, today);
            }
        }
    }

    /// A new payment method makes what is owed payable at the next sweep, with a retry schedule of its own.
    fn pay_with(&mut self, method: &PaymentMethod, today: NaiveDate) {
        if self.payment_method == *method {
            return;
        }
        self.payment_method = method.clone();
        let is_owed = matches!(self.status, Status::PastDue | Status::Unpaid);
        if is_owed && self.attempt.is_none() {
            self.status = Status::PastDue;
            self.failed_attempts = 0;
            self.next_payment_on = Some(today);
        }
    }

    fn stopped(&self, status: Status) -> Subscription {
        Subscription {
            status,
            next_payment_on: self.next_payment_on.filter(|_| self.attempt.is_some()),
            next_reminder_on: None,
            ..self.clone()
        }
    }

    fn refuse_if(&self, statuses: &[Status], action: &'static str) -> Result<(), Refusal> {
        if statuses.contains(&self.status) { Err(Refusal::Status { status: self.status, action }) } else { Ok(()) }
    }
}
