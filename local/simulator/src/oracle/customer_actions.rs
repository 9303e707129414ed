//! Predicts the state of a subscription after a customer's action.

use chrono::NaiveDate;

use super::BillingRules;
use super::expected_subscription::{CustomerAction, ExpectedSubscription};
use crate::calendar::{Month, month_of, next_month};
use crate::stored_items::StoredStatus::{self, Active, Cancelled, PastDue, Paused, Unpaid};

impl ExpectedSubscription {
    /// Returns the expected subscription after `action` on `today`; `None` if the action must be refused.
    pub fn predict_after_action(
        &self,
        action: &CustomerAction,
        today: NaiveDate,
        rules: &BillingRules,
    ) -> Option<Self> {
        let mut next = Self { new_waivers: Vec::new(), ..self.clone() };
        match action {
            CustomerAction::Pause => next.pause(today)?,
            CustomerAction::Resume => next.resume(today, rules)?,
            CustomerAction::Cancel => next.cancel(today),
            CustomerAction::CancelAtPeriodEnd => next.cancel_at_period_end(today)?,
            CustomerAction::Uncancel => next.uncancel(today, rules)?,
            _ if self.status == Cancelled => return None,
            CustomerAction::ChangePrice(price) => {
                let before = self.price_in(month_of(self.due));
                next.set_price(*price, today);
                if next.price_in(month_of(self.due)) != before {
                    next.plan_reminder(today, rules);
                }
            }
            CustomerAction::ChangePaymentDay(day) if self.status == Paused && self.has_other_payment_day(*day) => {
                return None;
            }
            CustomerAction::ChangePaymentDay(day) => {
                if next.set_payment_day(*day, today) && next.is_chargeable() {
                    next.plan_next_payment(today, rules);
                }
            }
            CustomerAction::ChangeCard(card) => next.change_card(card, today),
            CustomerAction::CorrectPrice(_) | CustomerAction::WaiveMonth(..)
                if self.status == Paused || self.open.is_some() || self.ends_on_due_date() =>
            {
                return None;
            }
            CustomerAction::CorrectPrice(_) if self.due > today => return None,
            CustomerAction::CorrectPrice(price) => next.correct_price(*price, today),
            CustomerAction::WaiveMonth(month, _) if *month != month_of(self.due) => return None,
            CustomerAction::WaiveMonth(month, reason) => {
                next.waive_months(*month, next_month(*month), reason);
                next.end_month(*month, today, rules);
            }
        }
        Some(next)
    }

    /// Pauses the subscription; `None` if the pause must be refused.
    fn pause(&mut self, today: NaiveDate) -> Option<()> {
        match self.status {
            Paused => return Some(()),
            PastDue | Unpaid | Cancelled => return None,
            Active => {}
        }
        if self.ends.is_some() || self.open.is_some() || self.due <= today {
            return None;
        }
        self.stop_with_status(Paused);
        Some(())
    }

    /// Resumes a paused subscription. Of the months that fell due during the pause, at most the last month becomes
    /// owed; the other months are waived. Returns `None` if the action must be refused.
    fn resume(&mut self, today: NaiveDate, rules: &BillingRules) -> Option<()> {
        match self.status {
            Active => return Some(()),
            PastDue | Unpaid | Cancelled => return None,
            Paused if self.open.is_some() => return None,
            Paused => {}
        }
        self.status = Active;
        if let Some(last) = self.last_due_date_up_to(today) {
            let is_owed = rules.is_charged_on_resume || last == today;
            let next = if is_owed { month_of(last) } else { next_month(month_of(last)) };
            self.waive_months(month_of(self.due), next, "paused");
            self.move_to_month(next);
        }
        self.plan_next_payment(today, rules);
        Some(())
    }

    /// Cancels the subscription on `today`, and waives the months that are owed on that day.
    pub fn cancel(&mut self, today: NaiveDate) {
        if self.status == Cancelled {
            return;
        }
        let first = if self.open.is_some() { next_month(month_of(self.due)) } else { month_of(self.due) };
        let last = self.last_due_date_up_to(today).map(month_of);
        let end_after = |last: Month| next_month(last).min(self.ends.unwrap_or((i32::MAX, 1)));
        let end = last.map_or(first, end_after).max(first);
        match (self.status, last) {
            (Paused, Some(last)) => {
                self.waive_months(first, last, "paused");
                self.waive_months(last.max(first), end, "cancelled");
            }
            (Unpaid, _) => self.waive_months(first, end, "unpaid"),
            _ => self.waive_months(first, end, "cancelled"),
        }
        self.ends = Some(end);
        self.stop_with_status(Cancelled);
        if self.open.is_none() {
            self.move_to_month(end);
        }
    }

    /// Sets a status in which no further month is charged. An open attempt stays in the payment index.
    fn stop_with_status(&mut self, status: StoredStatus) {
        self.status = status;
        self.next_reminder = None;
        if self.open.is_none() {
            self.next_payment = None;
        }
    }

    /// Sets the first due date after `today` as the end of the subscription; `None` if the action must be refused.
    fn cancel_at_period_end(&mut self, today: NaiveDate) -> Option<()> {
        if self.ends.is_some() || self.status == Cancelled {
            return Some(());
        }
        if matches!(self.status, Paused | Unpaid) {
            return None;
        }
        // The subscription ends on the first due date after today. So a month that is owed today is still charged.
        let end = if self.open.is_some() {
            self.first_due_date_after(today.max(self.due))
        } else {
            self.first_due_date_after(today)
        };
        self.ends = Some(month_of(end));
        if self.ends_on_due_date() {
            self.next_reminder = None;
        }
        Some(())
    }

    /// Removes the planned end of the subscription; `None` if the action must be refused.
    fn uncancel(&mut self, today: NaiveDate, rules: &BillingRules) -> Option<()> {
        let was_ending = self.ends_on_due_date();
        let ends_on = self.ends.map(|ends| if was_ending { self.due } else { self.due_date_in(ends) });
        if self.status == Cancelled || ends_on.is_some_and(|on| on <= today) {
            return None;
        }
        self.ends = None;
        if was_ending {
            self.plan_reminder(today, rules);
        }
        Some(())
    }

    /// Changes the card. If the subscription is past due or unpaid and has no open attempt, the new card is charged on
    /// `today`.
    fn change_card(&mut self, card: &str, today: NaiveDate) {
        if self.card == card {
            return;
        }
        card.clone_into(&mut self.card);
        self.rejections = 0;
        if matches!(self.status, PastDue | Unpaid) && self.open.is_none() {
            (self.status, self.failed, self.next_payment) = (PastDue, 0, Some(today));
        }
    }

    /// Corrects the price of the owed month, and of the later months that have the same price. After a rejection, the
    /// payment is charged on `today`.
    fn correct_price(&mut self, price: i64, today: NaiveDate) {
        let due = month_of(self.due);
        let wrong = self.price_in(due);
        let from = self.prices.iter().rposition(|(from, _)| *from <= due).unwrap_or(0);
        self.prices.iter_mut().skip(from).filter(|(_, old)| *old == wrong).for_each(|(_, old)| *old = price);
        if self.status == Active && self.rejections > 0 {
            self.next_payment = Some(today);
        }
        self.rejections = 0;
    }

    /// Plans the next payment and its reminder.
    fn plan_next_payment(&mut self, today: NaiveDate, rules: &BillingRules) {
        self.next_payment = Some(self.due.max(today));
        self.plan_reminder(today, rules);
    }

    /// Plans the reminder of the next payment, if that month will be charged and its due date has not passed.
    fn plan_reminder(&mut self, today: NaiveDate, rules: &BillingRules) {
        let is_planned = self.status == Active && self.open.is_none() && self.due >= today && !self.ends_on_due_date();
        self.next_reminder = is_planned.then(|| rules.reminder_date_before(self.due));
    }
}
