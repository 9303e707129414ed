//! Reads single attributes of items in DynamoDB's JSON format. Each function returns `None` if the attribute `name` is
//! missing or has another type.

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;

/// Returns the text attribute `name` of `item`.
pub fn read_text_attribute<'a>(item: &'a Value, name: &str) -> Option<&'a str> {
    item.get(name)?.get("S")?.as_str()
}

/// Returns the number attribute `name` of `item`.
pub fn read_number_attribute<T: std::str::FromStr>(item: &Value, name: &str) -> Option<T> {
    item.get(name)?.get("N")?.as_str()?.parse().ok()
}

/// Returns the Boolean attribute `name` of `item`.
pub fn read_bool_attribute(item: &Value, name: &str) -> Option<bool> {
    item.get(name)?.get("BOOL")?.as_bool()
}

/// Returns the date in the text attribute `name` of `item`.
pub fn read_date_attribute(item: &Value, name: &str) -> Option<NaiveDate> {
    read_text_attribute(item, name)?.parse().ok()
}

/// Returns the instant in the text attribute `name` of `item`.
pub fn read_instant_attribute(item: &Value, name: &str) -> Option<DateTime<Utc>> {
    read_text_attribute(item, name)?.parse().ok()
}
