//! The payment day and the price of each month, and the due dates of one subscription.

use chrono::NaiveDate;

use super::expected_subscription::ExpectedSubscription;
use super::written_records::WrittenRecords;
use crate::calendar::{Month, month_of, next_month, payment_date, previous_month};

/// Returns the value that applies in `month`. Each value in `terms` applies from its month on; the first value also
/// applies to all earlier months. `None` if `terms` is empty.
fn term_for_month<T: Copy>(terms: &[(Month, T)], month: Month) -> Option<T> {
    terms.iter().rfind(|(from, _)| *from <= month).or(terms.first()).map(|(_, term)| *term)
}

/// Sets the value that applies from the month `from` on, and removes all values that begin in this month or later.
fn set_term_from_month<T>(terms: &mut Vec<(Month, T)>, from: Month, term: T) {
    terms.retain(|(earlier, _)| *earlier < from);
    terms.push((from, term));
}

impl ExpectedSubscription {
    /// Returns the payment day in `month`.
    pub fn payment_day_in(&self, month: Month) -> u32 {
        term_for_month(&self.days, month).unwrap_or(1)
    }

    /// Returns whether the month that is due, or any later month, has a payment day other than `day`.
    pub fn has_other_payment_day(&self, day: u32) -> bool {
        let due = month_of(self.due);
        self.payment_day_in(due) != day || self.days.iter().any(|(from, later)| *from > due && *later != day)
    }

    /// Returns the price of `month`.
    pub fn price_in(&self, month: Month) -> i64 {
        term_for_month(&self.prices, month).unwrap_or_default()
    }

    /// Returns the due date of `month`. For the month that is due next, this is the stored due date.
    pub fn due_date_in(&self, month: Month) -> NaiveDate {
        if month == month_of(self.due) {
            return self.due;
        }
        payment_date(month, self.payment_day_in(month)).unwrap_or(NaiveDate::MAX)
    }

    /// Returns all due dates, from the next due date on.
    pub fn due_dates(&self) -> impl Iterator<Item = NaiveDate> + '_ {
        std::iter::successors(Some(month_of(self.due)), |month| Some(next_month(*month)))
            .map(|month| self.due_date_in(month))
    }

    /// Returns the last due date up to and including `today`; `None` if the next due date is later.
    pub fn last_due_date_up_to(&self, today: NaiveDate) -> Option<NaiveDate> {
        self.due_dates().take_while(|due| *due <= today).last()
    }

    /// Returns the first due date after `day`.
    pub fn first_due_date_after(&self, day: NaiveDate) -> NaiveDate {
        self.due_dates().find(|due| *due > day).unwrap_or(NaiveDate::MAX)
    }

    /// Makes `month` the month that is due next.
    pub fn move_to_month(&mut self, month: Month) {
        self.due = self.due_date_in(month);
        self.first_declined = None;
    }

    /// Returns the first payment date after `day`, for a subscription that has no due date yet.
    pub fn first_payment_date_after(&self, day: NaiveDate) -> NaiveDate {
        let in_month = |month: Month| payment_date(month, self.payment_day_in(month)).unwrap_or(NaiveDate::MAX);
        let this = in_month(month_of(day));
        if this > day { this } else { in_month(next_month(month_of(day))) }
    }

    /// Describes the difference between the expected and the written waivers; `None` if they are equal. Waiving a month
    /// twice or after its payment is a difference, too.
    pub fn waiver_difference(&self, records: &WrittenRecords) -> Option<String> {
        let written = records.waived.iter().map(|(due, reason)| (*due, reason.as_str()));
        let is_settled =
            |due: NaiveDate| self.paid.contains_key(&month_of(due)) || self.waived.contains_key(&month_of(due));
        let is_different =
            written.ne(self.new_waivers.iter().copied()) || self.new_waivers.iter().any(|(due, _)| is_settled(*due));
        is_different.then(|| {
            format!(
                "the expected waivers are {:?}, each written once, but the written waivers are {:?}",
                self.new_waivers, records.waived
            )
        })
    }

    /// Waives the months from `first` up to but not including `end`.
    pub fn waive_months(&mut self, first: Month, end: Month, reason: &'static str) {
        let months = std::iter::successors(Some(first), |month| Some(next_month(*month)));
        for month in months.take_while(|month| *month < end) {
            self.new_waivers.push((self.due_date_in(month), reason));
        }
    }

    /// Sets a price. It applies from the first month that has not fallen due by `today` and has had no attempt.
    pub fn set_price(&mut self, price: i64, today: NaiveDate) {
        let first = self.due_dates().skip(self.months_with_attempt()).find(|due| *due > today);
        set_term_from_month(&mut self.prices, first.map_or(month_of(self.due), month_of), price);
    }

    /// Sets a payment day. It applies from the first month that has had no attempt and whose due date is after `today`,
    /// both with the old and with the new payment day. Returns whether the next due date has changed.
    pub fn set_payment_day(&mut self, day: u32, today: NaiveDate) -> bool {
        let is_in_future =
            |due: &NaiveDate| *due > today && payment_date(month_of(*due), day).is_some_and(|new| new > today);
        let first = self.due_dates().skip(self.months_with_attempt()).find(is_in_future);
        let first = first.map_or(month_of(self.due), month_of);
        set_term_from_month(&mut self.days, first, day);
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

    /// Returns the number of months that keep their price and payment day because of an attempt: 1 if the month that is
    /// due has had an attempt, otherwise 0.
    fn months_with_attempt(&self) -> usize {
        usize::from(self.open.is_some() || self.failed > 0)
    }

    /// Returns the last month that is charged; `None` if no end is set.
    pub fn last_charged_month(&self) -> Option<Month> {
        self.ends.map(previous_month)
    }
}
