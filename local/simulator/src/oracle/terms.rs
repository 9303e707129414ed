//! Which day and which price a month has, and when it falls due.

use chrono::NaiveDate;

use super::agreement::Agreement;
use super::outcome::Records;
use crate::calendar::{Month, month_before, month_of, next_month, payment_date};

/// Of what counts from several months on, what counts in `month`.
fn in_force<T: Copy>(terms: &[(Month, T)], month: Month) -> Option<T> {
    terms.iter().rfind(|(from, _)| *from <= month).or(terms.first()).map(|(_, term)| *term)
}

/// From the month `from` on `term` counts, whatever was to count then.
fn agree<T>(terms: &mut Vec<(Month, T)>, from: Month, term: T) {
    terms.retain(|(earlier, _)| *earlier < from);
    terms.push((from, term));
}

impl Agreement {
    /// The payment day in `month`.
    pub fn day_in(&self, month: Month) -> u32 {
        in_force(&self.days, month).unwrap_or(1)
    }

    /// Whether the month that is due, or any later one, is agreed to be paid on another day than `day`.
    pub fn has_another_day(&self, day: u32) -> bool {
        let due = month_of(self.due);
        self.day_in(due) != day || self.days.iter().any(|(from, later)| *from > due && *later != day)
    }

    /// The price of `month`.
    pub fn price_in(&self, month: Month) -> i64 {
        in_force(&self.prices, month).unwrap_or_default()
    }

    /// The due date of `month`. What is due next keeps its date.
    pub fn due_in(&self, month: Month) -> NaiveDate {
        if month == month_of(self.due) {
            return self.due;
        }
        payment_date(month, self.day_in(month)).unwrap_or(NaiveDate::MAX)
    }

    /// The due dates from the one that is due next on.
    pub fn due_dates(&self) -> impl Iterator<Item = NaiveDate> + '_ {
        std::iter::successors(Some(month_of(self.due)), |month| Some(next_month(*month)))
            .map(|month| self.due_in(month))
    }

    /// The last due date that has come by `today`.
    pub fn last_due_by(&self, today: NaiveDate) -> Option<NaiveDate> {
        self.due_dates().take_while(|due| *due <= today).last()
    }

    /// The first due date after `day`.
    pub fn first_due_after(&self, day: NaiveDate) -> NaiveDate {
        self.due_dates().find(|due| *due > day).unwrap_or(NaiveDate::MAX)
    }

    /// `month` is due next.
    pub fn move_to(&mut self, month: Month) {
        self.due = self.due_in(month);
        self.first_declined = None;
    }

    /// The first payment date after `day`, of a subscription that has none yet.
    pub fn first_payment_after(&self, day: NaiveDate) -> NaiveDate {
        let in_month = |month: Month| payment_date(month, self.day_in(month)).unwrap_or(NaiveDate::MAX);
        let this = in_month(month_of(day));
        if this > day { this } else { in_month(next_month(month_of(day))) }
    }

    /// In what the months that were waived are not those that had to be.
    pub fn is_waived(&self, records: &Records) -> Option<String> {
        let written = records.waived.iter().map(|(due, reason)| (*due, reason.as_str()));
        let is_settled =
            |due: NaiveDate| self.paid.contains_key(&month_of(due)) || self.waived.contains_key(&month_of(due));
        let is_wrong = written.ne(self.waives.iter().copied()) || self.waives.iter().any(|(due, _)| is_settled(*due));
        is_wrong.then(|| format!("{:?} were to be waived once, and written was {:?}", self.waives, records.waived))
    }

    /// The months from `first` up to before `end` are waived.
    pub fn waive(&mut self, first: Month, end: Month, reason: &'static str) {
        let months = std::iter::successors(Some(first), |month| Some(next_month(*month)));
        for month in months.take_while(|month| *month < end) {
            self.waives.push((self.due_in(month), reason));
        }
    }

    /// A new price counts from the first month that has not fallen due.
    pub fn agree_on_price(&mut self, price: i64, today: NaiveDate) {
        let first = self.due_dates().skip(self.tried_months()).find(|due| *due > today);
        agree(&mut self.prices, first.map_or(month_of(self.due), month_of), price);
    }

    /// A new payment day counts from the first month whose date, by the old day and the new, lies ahead. Answers whether
    /// that is the month that is due next.
    pub fn agree_on_day(&mut self, day: u32, today: NaiveDate) -> bool {
        let is_ahead =
            |due: &NaiveDate| *due > today && payment_date(month_of(*due), day).is_some_and(|new| new > today);
        let first = self.due_dates().skip(self.tried_months()).find(is_ahead);
        let first = first.map_or(month_of(self.due), month_of);
        agree(&mut self.days, first, day);
        let moved = payment_date(first, day).unwrap_or(NaiveDate::MAX);
        if first != month_of(self.due) || moved == self.due {
            return false;
        }
        if self.first_due == self.due && self.paid.is_empty() {
            self.first_due = moved;
        }
        self.due = moved;
        true
    }

    /// A month for which an attempt was made keeps its terms.
    fn tried_months(&self) -> usize {
        usize::from(self.open.is_some() || self.failed > 0)
    }

    /// The month before the one in which it ends.
    pub fn last_charged(&self) -> Option<Month> {
        self.ends.map(month_before)
    }
}
