//! The calendar of the checker and the oracle: months and the payment dates in them. It shares no code with the calendar
//! that they judge.

use chrono::{Datelike, NaiveDate};

/// Year and month.
pub type Month = (i32, u32);

pub fn month_of(date: NaiveDate) -> Month {
    (date.year(), date.month())
}

pub fn next_month((year, month): Month) -> Month {
    if month == 12 { (year + 1, 1) } else { (year, month + 1) }
}

/// The payment day's date in a month: the last day that the month has, up to it.
pub fn payment_date((year, month): Month, day: u32) -> Option<NaiveDate> {
    (1..=day).rev().find_map(|day| NaiveDate::from_ymd_opt(year, month, day))
}

pub fn month_before((year, month): Month) -> Month {
    if month == 1 { (year - 1, 12) } else { (year, month - 1) }
}
