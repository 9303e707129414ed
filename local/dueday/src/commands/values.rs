//! How values are read from the command line: each refusal says what is allowed.

use std::time::Duration;

use std::net::IpAddr;
use std::ops::RangeInclusive;

pub use billing::parse_date as date;
use billing::{AccountId, SubscriptionId};
use chrono::NaiveTime;
use clap::Args;

/// One subscription.
#[derive(Debug, Args)]
pub struct Which {
    /// The account
    pub account: AccountId,
    /// The subscription's id
    pub subscription: SubscriptionId,
}

/// A time of the daily run.
pub fn billing_time(text: &str) -> Result<NaiveTime, String> {
    let time = NaiveTime::parse_from_str(text, "%H:%M").map_err(|_| "must be a time like 06:00".to_owned())?;
    let hour = |hour| NaiveTime::from_hms_opt(hour, 0, 0).unwrap_or_default();
    // No time zone skips an hour between 4 and 23, and the second run comes two hours later.
    if (hour(4)..=hour(21)).contains(&time) { Ok(time) } else { Err("must be from 04:00 to 21:00".to_owned()) }
}

/// An address of this machine.
pub fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "must be an IP address of this machine, such as 127.0.0.1 or ::1".to_owned())
}

/// A port; 0 is any that is free.
pub fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("must be a port from 0 to {}; 0 is any that is free", u16::MAX))
}

/// A whole number of `range`.
pub fn number(text: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}

/// A part of all.
pub fn part(text: &str) -> Result<f64, String> {
    let part: Option<f64> = text.parse().ok();
    part.filter(|part| (0.0..=0.5).contains(part))
        .ok_or_else(|| "must be a part from 0 to 0.5, such as 0.02".to_owned())
}

/// A time such as `90s`, `20m` or `2h`.
pub fn time(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3_600)];
    let seconds =
        units.into_iter().find_map(|(unit, seconds)| Some(text.strip_suffix(unit)?.parse::<u32>().ok()? * seconds));
    let seconds = seconds.ok_or_else(|| "must be a time such as 90s, 20m or 2h".to_owned())?;
    Ok(Duration::from_secs(seconds.into()))
}

/// A seed.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}
