//! The forecast of charges per day, computed from the stored due dates.

use std::collections::BTreeMap;

use chrono::{Months, NaiveDate};

use super::{ChargeTotal, PaymentSchedule, Period};

/// The expected charges per day: each payment on its due date, each planned retry on its date, and no payment after a
/// planned cancellation. The forecast does not consider future declines or actions of customers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forecast {
    today: NaiveDate,
    first_day_after: NaiveDate,
    days: BTreeMap<NaiveDate, ChargeTotal>,
}

impl Forecast {
    /// Creates an empty forecast of `months` months from `today` on.
    pub fn new(today: NaiveDate, months: u32) -> Self {
        let first_day_after = today.checked_add_months(Months::new(months)).unwrap_or(NaiveDate::MAX);
        Self { today, first_day_after, days: BTreeMap::new() }
    }

    /// Returns the first day after the forecast.
    pub fn first_day_after(&self) -> NaiveDate {
        self.first_day_after
    }

    /// Adds the expected charges of a subscription that will next be charged on `next_payment_on`.
    pub fn add(&mut self, payment_schedule: PaymentSchedule, next_payment_on: NaiveDate) {
        let (terms, today, first_day_after) = (payment_schedule.clone(), self.today, self.first_day_after);
        let ahead = payment_schedule.planned_payment_dates(Some(next_payment_on), today);
        for (due_on, payment_on) in ahead.take_while(|(_, payment_on)| (*payment_on).max(today) < first_day_after) {
            let price = terms.terms_in(Period::from_day(due_on)).price;
            self.days.entry(payment_on.max(today)).or_default().add(price);
        }
    }

    /// Returns the days with charges, the earliest first.
    pub fn days(&self) -> impl Iterator<Item = (NaiveDate, &ChargeTotal)> {
        self.days.iter().map(|(on, day)| (*on, day))
    }

    /// Returns the total of the charges of all days.
    pub fn total(&self) -> ChargeTotal {
        let mut total = ChargeTotal::default();
        self.days.values().for_each(|day| total.add_all(day));
        total
    }
}
