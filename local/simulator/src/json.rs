//! Reads single attributes of items in DynamoDB's JSON format. Each function returns `None` if the attribute `name` is
//! missing or has another type.

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;

/// Returns the text attribute `name` of `item`.
pub fn text<'a>(item: &'a Value, name: &str) -> Option<&'a str> {
    item.get(name)?.get("S")?.as_str()
}

/// Returns the number attribute `name` of `item`.
pub fn number<T: std::str::FromStr>(item: &Value, name: &str) -> Option<T> {
    item.get(name)?.get("N")?.as_str()?.parse().ok()
}

/// Returns the Boolean attribute `name` of `item`.
pub fn flag(item: &Value, name: &str) -> Option<bool> {
    item.get(name)?.get("BOOL")?.as_bool()
}

/// Returns the date in the text attribute `name` of `item`.
pub fn date(item: &Value, name: &str) -> Option<NaiveDate> {
    text(item, name)?.parse().ok()
}

/// Returns the instant in the text attribute `name` of `item`.
pub fn instant(item: &Value, name: &str) -> Option<DateTime<Utc>> {
    text(item, name)?.parse().ok()
}
