//! Parsers for the values on the command line. Each error message states the allowed values.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

pub use billing::parse_date;
use chrono::{NaiveTime, Timelike as _};
use emulator::RUN_HOURS;

/// Parses the time of the first daily run.
pub fn parse_billing_time(text: &str) -> Result<NaiveTime, String> {
    let time = NaiveTime::parse_from_str(text, "%H:%M").map_err(|_| "must be a time like 06:00".to_owned())?;
    // The second run starts two hours after the first run.
    let is_allowed = RUN_HOURS.contains(&time.hour()) && RUN_HOURS.contains(&(time.hour() + 2));
    if is_allowed { Ok(time) } else { Err("must be from 04:00 to 19:59".to_owned()) }
}

/// Parses an IP address of this machine.
pub fn parse_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "must be an IP address of this machine, such as 127.0.0.1 or ::1".to_owned())
}

/// Parses a TCP port; 0 selects any free port.
pub fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("must be a port from 0 to {}; 0 selects a free port", u16::MAX))
}

/// Parses a whole number in `range`.
pub fn parse_number<N: FromStr + PartialOrd + Display>(text: &str, range: RangeInclusive<N>) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}

/// Parses the fraction of requests that get a fault in a simulation, from 0 to 0.5.
pub fn parse_fraction(text: &str) -> Result<f64, String> {
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
