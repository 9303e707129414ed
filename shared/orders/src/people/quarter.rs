//! Quarters of a year, and the totals of orders in a quarter.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike as _, NaiveDate};
use serde::{Deserialize, Serialize};

use crate::ids::EmployeeId;
use billing::{Money, MoneyError};

/// A quarter of a year, written `2027-Q1`.
///
/// ```
/// use orders::Quarter;
/// assert_eq!(Quarter::from_day("2027-03-31".parse()?).to_string(), "2027-Q1");
/// assert_eq!(Quarter::from_day("2027-04-01".parse()?).to_string(), "2027-Q2");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Quarter {
    year: i32,
    /// The number of the quarter in the year, from 1 to 4.
    quarter: u32,
}
billing::openapi_schema!(
    Quarter,
    "Quarter",
    billing::openapi::build_pattern_schema("A quarter of a year (UTC), such as 2027-Q1.", "^[0-9]{4}-Q[1-4]$")
);

/// The error for a text that is not a quarter such as `2027-Q1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a quarter such as 2027-Q1")]
pub struct QuarterError;

impl Quarter {
    /// Returns the quarter of `day`.
    pub fn from_day(day: NaiveDate) -> Self {
        Self { year: day.year(), quarter: day.month0().wrapping_div(3).wrapping_add(1) }
    }
}

impl FromStr for Quarter {
    type Err = QuarterError;

    fn from_str(text: &str) -> Result<Self, QuarterError> {
        let (year, quarter) = text.split_once("-Q").ok_or(QuarterError)?;
        let parsed = Self {
            year: year.parse().map_err(|_| QuarterError)?,
            quarter: quarter.parse().ok().filter(|quarter| (1..=4).contains(quarter)).ok_or(QuarterError)?,
        };
        if parsed.to_string() == text && year.len() == 4 { Ok(parsed) } else { Err(QuarterError) }
    }
}

impl fmt::Display for Quarter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-Q{}", self.year, self.quarter)
    }
}

impl TryFrom<String> for Quarter {
    type Error = QuarterError;

    fn try_from(text: String) -> Result<Self, QuarterError> {
        text.parse()
    }
}

impl From<Quarter> for String {
    fn from(quarter: Quarter) -> String {
        quarter.to_string()
    }
}

/// The total amount of the orders that are credited to a representative in a quarter, in one currency. Cancelled orders,
/// returned orders and refunded amounts are not included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuarterTotal {
    pub representative: EmployeeId,
    pub quarter: Quarter,
    pub total: Money,
    pub version: u64,
}

impl QuarterTotal {
    /// Returns this total increased by `amount`, which can be negative.
    ///
    /// # Errors
    /// The currencies differ, or the sum is too large.
    pub fn with_amount_added(&self, amount: Money) -> Result<Self, MoneyError> {
        Ok(Self { total: self.total.checked_add(amount)?, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_start_in_january_april_july_and_october() {
        for (day, quarter) in [
            ("2027-01-01", "2027-Q1"),
            ("2028-02-29", "2028-Q1"),
            ("2027-06-30", "2027-Q2"),
            ("2027-07-01", "2027-Q3"),
            ("2027-12-31", "2027-Q4"),
        ] {
            assert_eq!(Quarter::from_day(day.parse().unwrap()).to_string(), quarter);
            assert_eq!(quarter.parse::<Quarter>().unwrap().to_string(), quarter);
        }
        for text in ["", "2027", "2027-Q0", "2027-Q5", "2027-Q01", "27-Q1", "2027-q1", "+2027-Q1"] {
            assert_eq!(text.parse::<Quarter>(), Err(QuarterError), "{text}");
        }
    }
}
