//! Reads single attributes of items in DynamoDB's JSON format. Each function returns `None` if the attribute `name` is
//! missing or has another type.

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;

pub fn text<'a>(item: &'a Value, name: &str) -> Option<&'a str> {
    item.get(name)?.get("S")?.as_str()
}

pub fn number<T: std::str::FromStr>(item: &Value, name: &str) -> Option<T> {
    item.get(name)?.get("N")?.as_str()?.parse().ok()
}

pub fn flag(item: &Value, name: &str) -> Option<bool> {
    item.get(name)?.get("BOOL")?.as_bool()
}

pub fn date(item: &Value, name: &str) -> Option<NaiveDate> {
    text(item, name)?.parse().ok()
}

pub fn instant(item: &Value, name: &str) -> Option<DateTime<Utc>> {
    text(item, name)?.parse().ok()
}
