//! The calendar of the checker and the oracle: months and their payment dates. It shares no code with the production
//! calendar in `billing`.

use chrono::{Datelike, NaiveDate};

/// A month of a year: the year, and the month from 1 to 12.
pub type Month = (i32, u32);

pub fn month_of(date: NaiveDate) -> Month {
    (date.year(), date.month())
}

pub fn next_month((year, month): Month) -> Month {
    if month == 12 { (year + 1, 1) } else { (year, month + 1) }
}

/// Returns the date on which the payment day `day` falls in a month: the month's last day if the month is shorter.
/// `None` if `day` is 0, or the year or month is out of range.
pub fn payment_date((year, month): Month, day: u32) -> Option<NaiveDate> {
    (1..=day).rev().find_map(|day| NaiveDate::from_ymd_opt(year, month, day))
}

pub fn previous_month((year, month): Month) -> Month {
    if month == 1 { (year - 1, 12) } else { (year, month - 1) }
}
