//! The forecast of charges per day, computed from the planned payments of subscriptions.

use std::collections::BTreeMap;

use chrono::{Months, NaiveDate};

use crate::settings::ceilings::ChargeTotal;
use crate::settings::policy::Policy;
use crate::subscriptions::subscription::Subscription;

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

    /// Adds the planned payments of `subscription`. A payment that is in progress is added today.
    pub fn add(&mut self, subscription: &Subscription, policy: &Policy) {
        for payment in subscription.planned_payments(policy, self.today) {
            let on = payment.payment_on.max(self.today);
            if on >= self.first_day_after {
                break;
            }
            self.days.entry(on).or_default().add(payment.amount);
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
