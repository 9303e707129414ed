//! Items and the structs that they are read into.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Item, Key, TIME_TO_LIVE, TableError, unreadable};

/// Writes `value` as attributes; what is `None` is absent.
pub fn to_item(value: &impl Serialize) -> Item {
    // Our own structs of strings, numbers and maps: there is nothing in them that could fail.
    serde_dynamo::to_item(value).expect("persistence structs are representable")
}

/// Reads `T` from attributes.
pub fn from_item<T: DeserializeOwned>(item: &Item) -> Result<T, TableError> {
    let attributes = serde_dynamo::Deserializer::from_attribute_value(serde_dynamo::AttributeValue::M(
        serde_dynamo::Item::from(item.clone()).into(),
    ));
    serde_path_to_error::deserialize(attributes)
        .map_err(|error| TableError::unreadable(key_of(item), unreadable::reason(&error)))
}

/// The key of `item`, as far as it has one.
pub fn key_of(item: &Item) -> Key {
    let text = |name: &str| match item.get(name) {
        Some(AttributeValue::S(text)) => text.clone(),
        _ => "?".to_owned(),
    };
    Key { pk: text("PK"), sk: text("SK") }
}

/// TTL attributes are whole seconds since 1970.
pub fn expiry(from: DateTime<Utc>, kept: TimeDelta) -> i64 {
    from.timestamp().saturating_add(kept.num_seconds())
}

/// Whether `item` has expired by `now`. DynamoDB deletes expired items within days, so they may still be read.
pub fn is_expired(item: &Item, now: DateTime<Utc>) -> bool {
    let expires = item.get(TIME_TO_LIVE).and_then(|at| at.as_n().ok()?.parse::<i64>().ok());
    expires.is_some_and(|expires| expires <= now.timestamp())
}
