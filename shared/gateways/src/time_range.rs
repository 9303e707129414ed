//! The time range of a list. The gateway's lists of all payments, refunds and disputes of a time range are read one list
//! page at a time, so the daily comparison of the table with the gateway does not hold a whole day in memory.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// A time range that begins at `from` and ends before `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimeRange {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
}

impl TimeRange {
    /// Returns the range of the day `on` in UTC.
    pub fn of_day(on: NaiveDate) -> Self {
        let from = on.and_time(NaiveTime::MIN).and_utc();
        Self { from, to: from.checked_add_days(Days::new(1)).unwrap_or(DateTime::<Utc>::MAX_UTC) }
    }

    /// Returns the range from an hour before to an hour after `at`.
    pub fn within_an_hour_of(at: DateTime<Utc>) -> Self {
        const HOUR: TimeDelta = TimeDelta::hours(1);
        Self {
            from: at.checked_sub_signed(HOUR).unwrap_or(DateTime::<Utc>::MIN_UTC),
            to: at.checked_add_signed(HOUR).unwrap_or(DateTime::<Utc>::MAX_UTC),
        }
    }

    /// Returns whether `at` is in this range.
    pub fn contains(&self, at: DateTime<Utc>) -> bool {
        self.from <= at && at < self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_range_of_a_day_begins_at_midnight_and_ends_before_the_next_midnight() {
        let day = TimeRange::of_day("2027-01-31".parse().unwrap());
        for (at, is_in_day) in [
            ("2027-01-30T23:59:59Z", false),
            ("2027-01-31T00:00:00Z", true),
            ("2027-01-31T23:59:59.999Z", true),
            ("2027-02-01T00:00:00Z", false),
        ] {
            assert_eq!(day.contains(at.parse().unwrap()), is_in_day, "{at}");
        }
    }
}
