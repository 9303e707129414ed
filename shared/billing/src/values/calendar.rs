//! The billing calendar: it computes the due date of a month's payment.
//!
//! A due date is always computed from the payment day and the month, never from the previous due date: 31 January is
//! followed by 28 February and then by 31 March.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike, Days, NaiveDate};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The day of the month on which payments are due, 1 to 31. In a shorter month, the payment is due on the last day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u8")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "The day of the month on which payments are due; in a shorter month, the last day.",
        minimum = 1,
        maximum = 31
    )
)]
pub struct PaymentDay(u8);

impl PaymentDay {
    /// Returns the due date in the month `period`: the payment day, or the last day of the month if the month is
    /// shorter.
    ///
    /// ```
    /// use billing::{PaymentDay, Period};
    /// let day = PaymentDay::try_from(31)?;
    /// let february: Period = "2028-02".parse()?;
    /// assert_eq!(day.due_in(february).to_string(), "2028-02-29");
    /// assert_eq!(day.due_in(february.next()).to_string(), "2028-03-31");
    /// # Ok::<(), billing::CalendarError>(())
    /// ```
    pub fn due_in(self, period: Period) -> NaiveDate {
        let last = period.last_day();
        last.with_day(u32::from(self.0)).unwrap_or(last)
    }

    /// Returns the first due date strictly after `day`.
    pub fn first_due_date_after(self, day: NaiveDate) -> NaiveDate {
        let period = Period::from_day(day);
        let due_on = self.due_in(period);
        if due_on > day { due_on } else { self.due_in(period.next()) }
    }

    /// Returns the first due date on or after `day`.
    pub fn first_due_date_on_or_after(self, day: NaiveDate) -> NaiveDate {
        let period = Period::from_day(day);
        let due_on = self.due_in(period);
        if due_on >= day { due_on } else { self.due_in(period.next()) }
    }
}

impl TryFrom<i64> for PaymentDay {
    type Error = CalendarError;

    fn try_from(day: i64) -> Result<Self, CalendarError> {
        match u8::try_from(day) {
            Ok(day @ 1..=31) => Ok(Self(day)),
            _ => Err(CalendarError::PaymentDay { day }),
        }
    }
}

impl From<PaymentDay> for u8 {
    fn from(day: PaymentDay) -> u8 {
        day.0
    }
}

impl fmt::Display for PaymentDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A calendar month. A subscription is charged successfully at most once for each period.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Period {
    year: i32,
    month: u32,
}
crate::openapi_schema!(
    Period,
    "Period",
    crate::openapi::build_pattern_schema("A calendar month, such as 2027-03.", "^[0-9]{4}-(0[1-9]|1[0-2])$")
);

impl Period {
    /// Returns the month that contains `day`.
    pub fn from_day(day: NaiveDate) -> Self {
        Self { year: day.year(), month: day.month() }
    }

    /// Returns the following month.
    pub fn next(self) -> Self {
        match self.month {
            12 => Self { year: self.year.saturating_add(1), month: 1 },
            month => Self { month: month.saturating_add(1), ..self },
        }
    }

    /// Returns the preceding month.
    pub fn previous(self) -> Self {
        match self.month {
            1 => Self { year: self.year.saturating_sub(1), month: 12 },
            month => Self { month: month.saturating_sub(1), ..self },
        }
    }

    /// Returns the last day of the month.
    pub fn last_day(self) -> NaiveDate {
        let next = self.next();
        NaiveDate::from_ymd_opt(next.year, next.month, 1).and_then(|first| first.pred_opt()).unwrap_or(NaiveDate::MAX)
    }
}

impl FromStr for Period {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let parsed = NaiveDate::parse_from_str(&format!("{text}-01"), "%Y-%m-%d").ok().map(Self::from_day);
        let is_canonical = |period: &Self| (0..=9_999).contains(&period.year) && period.to_string() == text;
        let invalid = || CalendarError::Period { text: text.chars().take(16).collect() };
        parsed.filter(is_canonical).ok_or_else(invalid)
    }
}

impl TryFrom<String> for Period {
    type Error = CalendarError;

    fn try_from(text: String) -> Result<Self, CalendarError> {
        text.parse()
    }
}

impl From<Period> for String {
    fn from(period: Period) -> String {
        period.to_string()
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

/// Parses a date such as `2027-01-31`. Each date has exactly one accepted spelling.
pub fn parse_date(text: &str) -> Result<NaiveDate, CalendarError> {
    let is_canonical = |date: &NaiveDate| (1..=9_999).contains(&date.year()) && date.to_string() == text;
    text.parse().ok().filter(is_canonical).ok_or(CalendarError::Date)
}

/// Deserializes a date with [`parse_date`], for the attribute `#[serde(deserialize_with)]`.
pub fn deserialize_date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NaiveDate, D::Error> {
    parse_date(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Returns the date that is `days` days after `day`. If there is no such date, returns the last possible date (in the
/// year 262142).
pub fn days_after(day: NaiveDate, days: u32) -> NaiveDate {
    day.checked_add_days(Days::new(u64::from(days))).unwrap_or(NaiveDate::MAX)
}

/// Returns the date that is `days` days before `day`. If there is no such date, returns the earliest possible date.
pub(crate) fn days_before(day: NaiveDate, days: u32) -> NaiveDate {
    day.checked_sub_days(Days::new(u64::from(days))).unwrap_or(NaiveDate::MIN)
}

/// The reason why a payment day, a date or a month is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    #[error("must be a day of the month from 1 to 31, not {day}")]
    PaymentDay { day: i64 },
    #[error("must be a date like 2027-01-31: year, month, day")]
    Date,
    #[error("must be a month like 2026-03, not {text:?}")]
    Period { text: String },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the payment day `n`.
    fn new_payment_day(n: i64) -> PaymentDay {
        PaymentDay::try_from(n).unwrap()
    }

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn parse_date_accepts_one_spelling_of_each_date() {
        for text in [
            "",
            "tomorrow",
            "2027-1-31",
            "2027-02-29",
            "31.01.2027",
            "+12026-01-01",
            "0000-01-01",
            " 2027-01-31",
            "2027-01",
        ] {
            assert_eq!(parse_date(text), Err(CalendarError::Date), "{text:?}");
        }
        assert_eq!(parse_date("2028-02-29"), Ok(date("2028-02-29")));
    }

    #[test]
    fn parse_period_accepts_one_spelling_of_each_month() {
        for text in ["", "2026-3", "2026-13", "2026-00", "+2026-03", "-001-03", "12026-03", " 2026-03", "2026-03-01"] {
            assert!(text.parse::<Period>().is_err(), "{text:?}");
        }
        for text in ["0000-01", "2026-03", "9999-12"] {
            assert_eq!(text.parse::<Period>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn payment_day_is_1_to_31() {
        for n in [i64::MIN, -1, 0, 32, 287, i64::MAX] {
            assert_eq!(PaymentDay::try_from(n), Err(CalendarError::PaymentDay { day: n }));
        }
        assert!((1..=31).all(|n| PaymentDay::try_from(n).is_ok()));
    }

    #[test]
    fn first_after_excludes_the_given_day_and_first_on_or_after_includes_it() {
        for (payment_day, today, first_after, first_on_or_after) in [
            (15, "2026-03-14", "2026-03-15", "2026-03-15"),
            (15, "2026-03-15", "2026-04-15", "2026-03-15"),
            (15, "2026-03-16", "2026-04-15", "2026-04-15"),
            (31, "2026-01-31", "2026-02-28", "2026-01-31"),
            (31, "2028-02-28", "2028-02-29", "2028-02-29"),
            (31, "2028-02-29", "2028-03-31", "2028-02-29"),
            (30, "2026-02-28", "2026-03-30", "2026-02-28"),
            (1, "2026-12-31", "2027-01-01", "2027-01-01"),
            (31, "2026-12-31", "2027-01-31", "2026-12-31"),
        ] {
            assert_eq!(
                new_payment_day(payment_day).first_due_date_after(date(today)),
                date(first_after),
                "{payment_day} after {today}"
            );
            let due_on = new_payment_day(payment_day).first_due_date_on_or_after(date(today));
            assert_eq!(due_on, date(first_on_or_after), "{payment_day} from {today}");
        }
    }

    #[test]
    fn due_date_in_a_short_month_does_not_shift_later_due_dates() {
        let mut period: Period = "2027-12".parse().unwrap();
        let mut dates = Vec::new();
        for _ in 0..5 {
            dates.push(new_payment_day(31).due_in(period).to_string());
            period = period.next();
        }
        assert_eq!(dates, ["2027-12-31", "2028-01-31", "2028-02-29", "2028-03-31", "2028-04-30"]);
    }

    proptest! {
        #[test]
        fn due_date_is_the_payment_day_or_the_last_day_of_the_month(n in 1i64..=31, days in 0u64..80_000) {
            let today = date("2000-01-01") + Days::new(days);
            let due_on = new_payment_day(n).due_in(Period::from_day(today));
            prop_assert_eq!(Period::from_day(due_on), Period::from_day(today));
            prop_assert!(i64::from(due_on.day()) == n || (i64::from(due_on.day()) < n && due_on.succ_opt().unwrap().day() == 1));
            let next = new_payment_day(n).first_due_date_after(today);
            prop_assert!(next > today && new_payment_day(n).first_due_date_on_or_after(next) == next);
        }
    }
}
