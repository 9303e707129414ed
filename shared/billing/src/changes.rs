//! What a customer or an operator does with a subscription. Every transition is a pure function of the item and the day,
//! and doing it twice is doing it once.
//!
//! An attempt that is open is never touched here: it has its amount, payment method and due date from the claim on, and
//! is resolved first. What is changed meanwhile counts from the next attempt.

use chrono::{DateTime, NaiveDate, Utc};

use super::{EmailAddress, Label, LeadDays, PaymentDay, PaymentMethod, Refusal, Status, Subscription, Terms};

/// What is to be different; what is `None` stays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Minor units of the subscription's currency.
    pub amount: Option<i64>,
    pub payment_day: Option<PaymentDay>,
    pub payment_method: Option<PaymentMethod>,
    /// When that was given: it does not take the place of one that was given later.
    pub payment_method_at: Option<DateTime<Utc>>,
    pub product_name: Option<Label>,
    /// `Some(None)`: mail goes to the account's address again.
    pub email: Option<Option<EmailAddress>>,
}

impl Subscription {
    /// Makes `changes`, all of them or none. A new amount or payment day counts from the first month that has not fallen due
    /// (`terms.rs`). An amount or a date changed after its reminder is reminded again.
    ///
    /// # Errors
    /// [`Refusal::Status`] once cancelled; [`Refusal::PausedDay`]; [`Refusal::Amount`].
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
            changed.pay_from_next(self.price.currency().price(minor)?, lead, today);
        }
        if let Some(day) = changes.payment_day {
            let is_other = |terms: &Terms| terms.payment_day != day;
            if self.status == Status::Paused && (day != self.payment_day || self.waiting_terms.iter().any(is_other)) {
                return Err(Refusal::PausedDay);
            }
            changed.move_payments(day, lead, today);
        }
        if let Some(method) = &changes.payment_method {
            changed.pay_with(method, changes.payment_method_at, today);
        }
        Ok(changed)
    }

    /// Enters both indexes for the current due date.
    pub(super) fn schedule(&mut self, lead: LeadDays, today: NaiveDate) {
        self.next_payment_on = Some(self.due_on.max(today));
        self.plan_reminder(lead, today);
    }

    /// Enters the reminder index, if there will be a payment to remind of.
    pub(super) fn plan_reminder(&mut self, lead: LeadDays, today: NaiveDate) {
        let is_planned =
            self.status == Status::Active && self.attempt.is_none() && self.due_on >= today && !self.is_ending();
        self.next_reminder_on = is_planned.then(|| lead.before(self.due_on));
    }

    /// A new payment method makes what is owed payable at the next sweep, with a retry schedule of its own.
    fn pay_with(&mut self, method: &PaymentMethod, given_at: Option<DateTime<Utc>>, today: NaiveDate) {
        let since = self.payment_method_at.unwrap_or(self.created_at);
        if self.payment_method == *method || given_at.is_some_and(|at| at < since) {
            return;
        }
        self.payment_method = method.clone();
        self.payment_method_at = given_at.or(self.payment_method_at);
        self.disputed_at = None;
        self.rejections = 0;
        if matches!(self.status, Status::PastDue | Status::Unpaid) && self.attempt.is_none() {
            self.make_payable(today);
        }
    }

    /// Makes what was declined payable at the next sweep.
    fn make_payable(&mut self, today: NaiveDate) {
        self.status = Status::PastDue;
        self.failed_attempts = 0;
        self.next_payment_on = Some(today);
    }

    /// Makes what is owed payable at the next sweep with the same payment method, with a retry schedule of its own: what was paid today
    /// waits for tomorrow all the same. `may_be_disputed`: though that is disputed.
    ///
    /// # Errors
    /// [`Refusal::Status`] while paused or cancelled; [`Refusal::Paying`]; [`Refusal::NothingOwed`]; [`Refusal::Disputed`].
    pub fn retry(&self, may_be_disputed: bool, today: NaiveDate, now: DateTime<Utc>) -> Result<Subscription, Refusal> {
        self.refuse_if(&[Status::Paused, Status::Cancelled], "retried")?;
        if let Some(attempt) = &self.attempt {
            return Err(Refusal::Paying { due_on: attempt.due_on, action: "retried" });
        }
        if self.disputed_at.is_some() && !may_be_disputed {
            return Err(Refusal::Disputed);
        }
        let mut retried = Subscription { disputed_at: None, rejections: 0, ..self.clone() };
        if self.disputed_at.is_some() {
            retried.charged_though_disputed_at = Some(now);
        }
        match self.status {
            Status::PastDue | Status::Unpaid => retried.make_payable(today),
            // What was rejected waits for the day after.
            _ if self.due_on <= today && self.rejections > 0 => retried.next_payment_on = Some(today),
            _ if self.due_on <= today || self.disputed_at.is_some() => {}
            _ => return Err(Refusal::NothingOwed { due_on: self.due_on }),
        }
        Ok(retried)
    }

    /// In `status`, and in no index but for an open attempt.
    pub(super) fn stopped(&self, status: Status) -> Subscription {
        Subscription {
            status,
            next_payment_on: self.next_payment_on.filter(|_| self.attempt.is_some()),
            next_reminder_on: None,
            ..self.clone()
        }
    }

    pub(super) fn refuse_if(&self, statuses: &[Status], action: &'static str) -> Result<(), Refusal> {
        if statuses.contains(&self.status) { Err(Refusal::Status { status: self.status, action }) } else { Ok(()) }
    }
}
