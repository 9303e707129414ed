//! What becomes of an agreement when a customer or an operator asks for something.

use chrono::NaiveDate;

use super::Rules;
use super::agreement::{Act, Agreement};
use crate::calendar::{Month, month_of, next_month};
use crate::stored::StoredStatus::{self, Active, Cancelled, PastDue, Paused, Unpaid};

impl Agreement {
    /// The agreement after `act` on `today`; `None` if that has to be refused.
    pub fn after(&self, act: &Act, today: NaiveDate, rules: &Rules) -> Option<Self> {
        let mut next = Self { waives: Vec::new(), ..self.clone() };
        match act {
            Act::Pause => next.pause(today)?,
            Act::Resume => next.resume(today, rules)?,
            Act::Cancel => next.cancel(today),
            Act::End => next.end(today)?,
            Act::Keep => next.keep(today, rules)?,
            _ if self.status == Cancelled => return None,
            Act::Price(price) => {
                let before = self.price_in(month_of(self.due));
                next.agree_on_price(*price, today);
                if next.price_in(month_of(self.due)) != before {
                    next.plan_reminder(today, rules);
                }
            }
            Act::Day(day) if self.status == Paused && self.has_another_day(*day) => return None,
            Act::Day(day) => {
                if next.agree_on_day(*day, today) && next.is_chargeable() {
                    next.plan(today, rules);
                }
            }
            Act::Card(card) => next.pay_with(card, today),
        }
        Some(next)
    }

    fn pause(&mut self, today: NaiveDate) -> Option<()> {
        match self.status {
            Paused => return Some(()),
            PastDue | Unpaid | Cancelled => return None,
            Active => {}
        }
        if self.ends.is_some() || self.open.is_some() || self.due <= today {
            return None;
        }
        self.stop(Paused);
        Some(())
    }

    /// Of the months that fell due in the pause the last is owed, or none is; the others are waived.
    fn resume(&mut self, today: NaiveDate, rules: &Rules) -> Option<()> {
        match self.status {
            Active => return Some(()),
            PastDue | Unpaid | Cancelled => return None,
            Paused if self.open.is_some() => return None,
            Paused => {}
        }
        self.status = Active;
        if let Some(last) = self.last_due_by(today) {
            let is_owed = rules.is_charged_on_resume || last == today;
            let next = if is_owed { month_of(last) } else { next_month(month_of(last)) };
            self.waive(month_of(self.due), next, "paused");
            self.move_to(next);
        }
        self.plan(today, rules);
        Some(())
    }

    /// Ends it on `today`: what is owed then is waived.
    pub fn cancel(&mut self, today: NaiveDate) {
        if self.status == Cancelled {
            return;
        }
        let first = if self.open.is_some() { next_month(month_of(self.due)) } else { month_of(self.due) };
        let last = self.last_due_by(today).map(month_of);
        let has_come = |last: Month| next_month(last).min(self.ends.unwrap_or((i32::MAX, 1)));
        let end = last.map_or(first, has_come).max(first);
        match (self.status, last) {
            (Paused, Some(last)) => {
                self.waive(first, last, "paused");
                self.waive(last.max(first), end, "cancelled");
            }
            (Unpaid, _) => self.waive(first, end, "unpaid"),
            _ => self.waive(first, end, "cancelled"),
        }
        self.ends = Some(end);
        self.stop(Cancelled);
        if self.open.is_none() {
            self.move_to(end);
        }
    }

    fn stop(&mut self, status: StoredStatus) {
        self.status = status;
        self.remind = None;
        if self.open.is_none() {
            self.next = None;
        }
    }

    fn end(&mut self, today: NaiveDate) -> Option<()> {
        if self.ends.is_some() || self.status == Cancelled {
            return Some(());
        }
        if matches!(self.status, Paused | Unpaid) {
            return None;
        }
        // What is owed today is still charged.
        let end =
            if self.open.is_some() { self.first_due_after(today.max(self.due)) } else { self.first_due_after(today) };
        self.ends = Some(month_of(end));
        if self.is_ending() {
            self.remind = None;
        }
        Some(())
    }

    fn keep(&mut self, today: NaiveDate, rules: &Rules) -> Option<()> {
        let was_ending = self.is_ending();
        let ends_on = self.ends.map(|ends| if was_ending { self.due } else { self.due_in(ends) });
        if self.status == Cancelled || ends_on.is_some_and(|on| on <= today) {
            return None;
        }
        self.ends = None;
        if was_ending {
            self.plan_reminder(today, rules);
        }
        Some(())
    }

    fn pay_with(&mut self, card: &str, today: NaiveDate) {
        if self.card == card {
            return;
        }
        card.clone_into(&mut self.card);
        self.rejections = 0;
        if matches!(self.status, PastDue | Unpaid) && self.open.is_none() {
            (self.status, self.failed, self.next) = (PastDue, 0, Some(today));
        }
    }

    /// A payment is to be made, and is reminded of before.
    fn plan(&mut self, today: NaiveDate, rules: &Rules) {
        self.next = Some(self.due.max(today));
        self.plan_reminder(today, rules);
    }

    /// A payment that will be is reminded of.
    fn plan_reminder(&mut self, today: NaiveDate, rules: &Rules) {
        let is_planned = self.status == Active && self.open.is_none() && self.due >= today && !self.is_ending();
        self.remind = is_planned.then(|| rules.reminder_before(self.due));
    }
}
