//! Times in tables, in the billing time zone, as in mails, reports and due dates.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

/// Formats `at` in the time zone `zone`, without seconds.
pub fn format_minutes(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%Y-%m-%d %H:%M").to_string()
}

/// Formats `at` in the time zone `zone`, with seconds.
pub fn format_seconds(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%Y-%m-%d %H:%M:%S").to_string()
}
