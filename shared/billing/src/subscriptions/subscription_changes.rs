//! The changes that a customer or an operator makes to a subscription. Every change is a pure function of the stored
//! item and the date, and is idempotent.
//!
//! No change affects an open attempt, because the amount, the payment method and the due date of an attempt never
//! change after the claim. A change that is made during an open attempt applies from the next attempt.

use chrono::{DateTime, NaiveDate, Utc};

use crate::records::payment::PaymentMethod;
use crate::settings::policy::LeadDays;
use crate::subscriptions::refusal::ChangeRefusal;
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus, SubscriptionTerms};
use crate::values::calendar::PaymentDay;
use crate::values::calendar::days_after;
use crate::values::contact_data::{EmailAddress, Label};

/// The changes of a subscription that a caller requests. A field that is `None` stays unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SubscriptionChanges {
    /// The new price in minor units of the currency of the subscription.
    pub amount: Option<i64>,
    pub payment_day: Option<PaymentDay>,
    pub payment_method: Option<PaymentMethod>,
    /// The time at which the customer gave the new payment method. If the customer gave the stored payment method after
    /// this time, the stored payment method stays. If this time is `None`, the new payment method always replaces the
    /// stored one.
    pub payment_method_at: Option<DateTime<Utc>>,
    pub product_name: Option<Label>,
    /// The new address for mails; `Some(None)` sends mails to the address of the account again.
    pub email: Option<Option<EmailAddress>>,
}

impl Subscription {
    /// Applies all of `changes`. If one of the changes is refused, applies none. A new amount or payment day applies
    /// from the first month that has not fallen due (see `terms.rs`). If the amount or the date of the next payment
    /// changes after the reminder of this payment was sent, a new reminder is planned.
    ///
    /// # Errors
    /// - [`ChangeRefusal::Status`] if the subscription is cancelled
    /// - [`ChangeRefusal::PausedDay`] if a paused subscription gets a different payment day
    /// - [`ChangeRefusal::Amount`] if the amount is not a valid price
    pub fn apply_changes(
        &self,
        changes: &SubscriptionChanges,
        lead: LeadDays,
        today: NaiveDate,
    ) -> Result<Subscription, ChangeRefusal> {
        self.refuse_if_status_in(&[SubscriptionStatus::Cancelled], "changed")?;
        let mut changed = self.clone();
        if let Some(name) = &changes.product_name {
            changed.product_name = name.clone();
        }
        if let Some(email) = &changes.email {
            changed.email = email.clone();
        }
        if let Some(minor) = changes.amount {
            changed.set_price(self.price.currency().price(minor)?, lead, today);
        }
        if let Some(day) = changes.payment_day {
            let is_other = |terms: &SubscriptionTerms| terms.payment_day != day;
            if self.status == SubscriptionStatus::Paused
                && (day != self.payment_day || self.waiting_terms.iter().any(is_other))
            {
                return Err(ChangeRefusal::PausedDay);
            }
            changed.set_payment_day(day, lead, today);
            changed.replace_late_payment_date(today);
        }
        if let Some(method) = &changes.payment_method {
            changed.set_payment_method(method, changes.payment_method_at, today);
            changed.replace_late_payment_date(today);
        }
        Ok(changed)
    }

    /// Plans the payment and the reminder of the current due date: adds the subscription to the payment index, and adds
    /// it to the reminder index if a reminder is needed.
    pub(crate) fn schedule_payment_and_reminder(&mut self, lead: LeadDays, today: NaiveDate) {
        self.next_payment_on = Some(self.due_on.max(today));
        self.plan_reminder(lead, today);
    }

    /// Adds the subscription to the reminder index if the payment of its due date will be charged and is not overdue;
    /// otherwise removes it from the reminder index.
    pub(crate) fn plan_reminder(&mut self, lead: LeadDays, today: NaiveDate) {
        let is_planned = self.status == SubscriptionStatus::Active
            && self.attempt.is_none()
            && self.due_on >= today
            && !self.is_ending();
        self.next_reminder_on = is_planned.then(|| lead.date_before(self.due_on));
    }

    /// Replaces the payment method with `method`, which the customer gave at `given_at`. Changes nothing if the
    /// customer gave the stored payment method later than `method`. Compares whole seconds, because gateways round the
    /// time down to a second. A stored time in the future was recorded by a clock that was ahead, so it is not compared.
    /// A declined payment becomes payable in the next run of the payment batch, and its retry schedule starts again.
    fn set_payment_method(&mut self, method: &PaymentMethod, given_at: Option<DateTime<Utc>>, today: NaiveDate) {
        let since = self.payment_method_at.unwrap_or(self.created_at);
        let is_since_known = since.date_naive() <= days_after(today, 1);
        let is_older = is_since_known && given_at.is_some_and(|at| at.timestamp() < since.timestamp());
        if self.payment_method == *method || is_older {
            return;
        }
        self.payment_method = method.clone();
        self.payment_method_at = given_at.or(self.payment_method_at);
        self.disputed_at = None;
        self.rejections = 0;
        if matches!(self.status, SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid) && self.attempt.is_none() {
            self.make_payable(today);
        }
    }

    /// Makes a declined payment payable in the next run of the payment batch.
    fn make_payable(&mut self, today: NaiveDate) {
        self.status = SubscriptionStatus::PastDue;
        self.failed_attempts = 0;
        self.next_payment_on = Some(self.due_on.max(today));
    }

    /// Makes the owed payment payable in the next run of the payment batch with the same payment method, and restarts
    /// the retry schedule of the payment. If another payment of the subscription succeeded today, or may have succeeded
    /// today, the owed payment still waits until tomorrow. `may_be_disputed` allows the charge of a disputed payment
    /// method.
    ///
    /// # Errors
    /// - [`ChangeRefusal::Status`] if the subscription is paused or cancelled
    /// - [`ChangeRefusal::Paying`] if an attempt is open
    /// - [`ChangeRefusal::Disputed`] if the payment method is disputed and `may_be_disputed` is false
    /// - [`ChangeRefusal::NothingOwed`] if no payment is owed and the payment method is not disputed
    pub fn retry_owed_payment(
        &self,
        may_be_disputed: bool,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Subscription, ChangeRefusal> {
        self.refuse_if_status_in(&[SubscriptionStatus::Paused, SubscriptionStatus::Cancelled], "retried")?;
        if let Some(attempt) = &self.attempt {
            return Err(ChangeRefusal::Paying { due_on: attempt.due_on, action: "retried" });
        }
        if self.disputed_at.is_some() && !may_be_disputed {
            return Err(ChangeRefusal::Disputed);
        }
        let mut retried = Subscription { disputed_at: None, rejections: 0, ..self.clone() };
        if self.disputed_at.is_some() {
            retried.charged_though_disputed_at = Some(now);
        }
        match self.status {
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => retried.make_payable(today),
            // After the gateway rejected the payment, the next try was planned for the next day. Plan it for today
            // instead.
            _ if self.due_on <= today && self.rejections > 0 => retried.next_payment_on = Some(today),
            _ if self.due_on <= today || self.disputed_at.is_some() => retried.replace_late_payment_date(today),
            _ => return Err(ChangeRefusal::NothingOwed { due_on: self.due_on }),
        }
        Ok(retried)
    }

    /// Returns the subscription with `status`, removed from the payment index and the reminder index. While an attempt
    /// is open, the subscription stays in the payment index, so that a run still finds the attempt.
    pub(crate) fn with_stopped_status(&self, status: SubscriptionStatus) -> Subscription {
        Subscription {
            status,
            next_payment_on: self.next_payment_on.filter(|_| self.attempt.is_some()),
            next_reminder_on: None,
            ..self.clone()
        }
    }

    /// Returns the error [`ChangeRefusal::Status`] if the subscription has one of the statuses `statuses`. `action` completes
    /// the error text "cannot be ...".
    pub(crate) fn refuse_if_status_in(
        &self,
        statuses: &[SubscriptionStatus],
        action: &'static str,
    ) -> Result<(), ChangeRefusal> {
        if statuses.contains(&self.status) {
            Err(ChangeRefusal::Status { status: self.status, action })
        } else {
            Ok(())
        }
    }
}
