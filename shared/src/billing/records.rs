//! What is kept of a subscription's payments, and the day that is asked about.

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

use super::calendar::days_after;
use super::{AttemptRecord, ForgivenPeriod, Period, Receipt};

/// What is kept of one subscription's payments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Records {
    pub receipts: Vec<Receipt>,
    /// Those that did not succeed, in the order of their numbers.
    pub attempts: Vec<AttemptRecord>,
    pub forgiven: Vec<ForgivenPeriod>,
}

/// The day that is asked about, and the day on which it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AskedDay {
    pub on: NaiveDate,
    pub today: NaiveDate,
    /// The billing time zone, in which instants have a date.
    pub zone: Tz,
    /// Records expire after so many days.
    pub kept_days: u32,
}

impl AskedDay {
    /// The date of `instant`.
    pub fn date_of(&self, instant: DateTime<Utc>) -> NaiveDate {
        instant.with_timezone(&self.zone).date_naive()
    }

    /// Whether it is yet to come.
    pub fn is_ahead(&self) -> bool {
        self.on > self.today
    }

    /// Whether records of that day may have expired.
    pub fn may_have_expired(&self) -> bool {
        days_after(self.on, self.kept_days) <= self.today
    }
}

impl Records {
    /// Those of payments that fell due in the month of `day` or on `due_on`, and those of that very day.
    pub fn around(mut self, day: &AskedDay, due_on: Option<NaiveDate>) -> Self {
        let is_near = |due: NaiveDate, at: DateTime<Utc>| {
            Period::of(due) == Period::of(day.on) || Some(due) == due_on || day.date_of(at) == day.on
        };
        self.receipts.retain(|receipt| is_near(receipt.due_on, receipt.processed_at));
        self.attempts.retain(|attempt| is_near(attempt.due_on, attempt.processed_at));
        self.forgiven.retain(|forgiven| is_near(forgiven.due_on, forgiven.forgiven_at));
        self
    }
}
