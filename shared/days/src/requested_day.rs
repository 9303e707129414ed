//! The day for which a caller requests an explanation or a proof, and the payment records that are relevant for this
//! day.

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

use billing::{PaymentRecords, Period, days_after};

/// The day for which a caller requests an explanation or a proof, and the current date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestedDay {
    /// The requested day.
    pub on: NaiveDate,
    /// The current date in the billing time zone.
    pub today: NaiveDate,
    /// The billing time zone, which determines the date of an instant.
    pub zone: Tz,
    /// The number of days after which the records of a day expire.
    pub kept_days: u32,
}

impl RequestedDay {
    /// Returns the date of `instant` in the billing time zone.
    pub fn date_of(&self, instant: DateTime<Utc>) -> NaiveDate {
        instant.with_timezone(&self.zone).date_naive()
    }

    /// Returns whether the requested day is in the future.
    pub fn is_in_future(&self) -> bool {
        self.on > self.today
    }

    /// Returns whether records of the requested day may have expired.
    pub fn may_have_expired(&self) -> bool {
        days_after(self.on, self.kept_days) <= self.today
    }
}

/// Selects from `records` the records that are relevant for the requested day: the records of payments that were due in
/// the month of this day or on `due_on`, and all records that were written on this day.
pub fn relevant_records(mut records: PaymentRecords, day: &RequestedDay, due_on: Option<NaiveDate>) -> PaymentRecords {
    let is_relevant = |due: NaiveDate, at: DateTime<Utc>| {
        Period::from_day(due) == Period::from_day(day.on) || Some(due) == due_on || day.date_of(at) == day.on
    };
    records.receipts.retain(|receipt| is_relevant(receipt.due_on, receipt.processed_at));
    records.attempts.retain(|attempt| is_relevant(attempt.due_on, attempt.processed_at));
    records.waived.retain(|waived| is_relevant(waived.due_on, waived.waived_at));
    records
}
