//! The day that is asked about, and the records that an answer about it rests on.

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

use billing::{Period, Records, days_after};

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

/// Of `records`, those of payments that fell due in the month of `day` or on `due_on`, and those of that very day.
pub fn around(mut records: Records, day: &AskedDay, due_on: Option<NaiveDate>) -> Records {
    let is_near = |due: NaiveDate, at: DateTime<Utc>| {
        Period::of(due) == Period::of(day.on) || Some(due) == due_on || day.date_of(at) == day.on
    };
    records.receipts.retain(|receipt| is_near(receipt.due_on, receipt.processed_at));
    records.attempts.retain(|attempt| is_near(attempt.due_on, attempt.processed_at));
    records.waived.retain(|waived| is_near(waived.due_on, waived.waived_at));
    records
}
