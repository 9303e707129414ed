//! Parsers for the values on the command line. Each error message states the allowed values.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use billing::PaymentDay;
pub use billing::parse_date;
use chrono::{NaiveTime, Timelike as _};
use emulator::RUN_HOURS;

/// The payment day that means the last day of every month.
const LAST_DAY: i64 = 31;

/// Parses the time of the first daily run.
pub fn parse_billing_time(text: &str) -> Result<NaiveTime, String> {
    let time = NaiveTime::parse_from_str(text, "%H:%M").map_err(|_| "must be a time like 06:00".to_owned())?;
    // The second run starts two hours after the first run.
    let is_allowed = RUN_HOURS.contains(&time.hour()) && RUN_HOURS.contains(&(time.hour() + 2));
    if is_allowed { Ok(time) } else { Err("must be from 04:00 to 19:59".to_owned()) }
}

/// Parses an IP address of this machine.
pub fn parse_ip_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "must be an IP address of this machine, such as 127.0.0.1 or ::1".to_owned())
}

/// Parses a TCP port; 0 selects any free port.
pub fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("must be a port from 0 to {}; 0 selects a free port", u16::MAX))
}

/// Parses a whole number in `range`.
pub fn parse_number_in_range<N: FromStr + PartialOrd + Display>(
    text: &str,
    range: RangeInclusive<N>,
) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}

/// Parses the fraction of requests that get a fault in a simulation, from 0 to 0.5.
pub fn parse_fault_fraction(text: &str) -> Result<f64, String> {
    let fraction: Option<f64> = text.parse().ok();
    fraction
        .filter(|fraction| (0.0..=0.5).contains(fraction))
        .ok_or_else(|| "must be a fraction from 0 to 0.5, such as 0.02".to_owned())
}

/// Parses a duration such as `90s`, `20m` or `2h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3_600)];
    let seconds = units
        .into_iter()
        .find_map(|(unit, seconds)| text.strip_suffix(unit)?.parse::<u32>().ok()?.checked_mul(seconds));
    let seconds = seconds.ok_or_else(|| "must be a duration such as 90s, 20m or 2h, at most 1193046h".to_owned())?;
    Ok(Duration::from_secs(seconds.into()))
}

/// Parses the seed of a simulation.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}

/// Parses a payment day: a number, or `last`.
///
/// # Errors
/// A message with the allowed values.
pub fn parse_payment_day(text: &str) -> Result<PaymentDay, String> {
    let day = if text.eq_ignore_ascii_case("last") { Some(LAST_DAY) } else { text.parse().ok() };
    let day = day.and_then(|day: i64| PaymentDay::try_from(day).ok());
    day.ok_or_else(|| "must be a day of the month from 1 to 31, or last".to_owned())
}

/// Checks an idempotency key by the same rule as the API.
///
/// # Errors
/// The key is empty, longer than 255 characters, or has a character that is not printable ASCII.
pub fn parse_idempotency_key(text: &str) -> Result<String, String> {
    let is_visible = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let is_valid = is_visible && (1..=255).contains(&text.len());
    is_valid.then(|| text.to_owned()).ok_or_else(|| "must be 1 to 255 printable ASCII characters".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_payment_day_accepts_numbers_and_the_word_last() {
        let day = |text| parse_payment_day(text).map(u8::from);
        assert_eq!((day("1"), day("31"), day("last"), day("LAST")), (Ok(1), Ok(31), Ok(31), Ok(31)));
        for text in ["", "0", "32", "1.5", "first", "-1", "99999999999999999999"] {
            assert_eq!(day(text).unwrap_err(), "must be a day of the month from 1 to 31, or last", "{text}");
        }
    }
}
