//! The forecast: what will be charged on which day, as far as the calendar can tell.

use std::collections::BTreeMap;

use chrono::{Months, NaiveDate};

use super::{Course, Day, Period};

/// What will be charged, day by day: every payment on its day, retries on theirs, nothing of what ends before. That a
/// payment is declined, or a customer acts, it cannot know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forecast {
    today: NaiveDate,
    until: NaiveDate,
    days: BTreeMap<NaiveDate, Day>,
}

impl Forecast {
    /// A forecast of `months` from `today` on.
    pub fn new(today: NaiveDate, months: u32) -> Self {
        let until = today.checked_add_months(Months::new(months)).unwrap_or(NaiveDate::MAX);
        Self { today, until, days: BTreeMap::new() }
    }

    /// The first day that is not looked at any more.
    pub fn until(&self) -> NaiveDate {
        self.until
    }

    /// Counts what will be charged of a subscription that is due next on `next_payment_on`.
    pub fn add(&mut self, course: Course, next_payment_on: NaiveDate) {
        let (terms, today, until) = (course.clone(), self.today, self.until);
        let ahead = course.payments_ahead(Some(next_payment_on), today);
        for (due_on, payment_on) in ahead.take_while(|(_, payment_on)| (*payment_on).max(today) < until) {
            let price = terms.terms_in(Period::of(due_on)).price;
            self.days.entry(payment_on.max(today)).or_default().add(price);
        }
    }

    /// The days on which anything is charged, the earliest first.
    pub fn days(&self) -> impl Iterator<Item = (NaiveDate, &Day)> {
        self.days.iter().map(|(on, day)| (*on, day))
    }

    /// All of it.
    pub fn total(&self) -> Day {
        let mut total = Day::default();
        self.days.values().for_each(|day| total.add_all(day));
        total
    }
}
