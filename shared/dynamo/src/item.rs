//! Conversion between DynamoDB items and the Rust structs that have their attributes as fields.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Item, Key, TIME_TO_LIVE, TableError, unreadable};

/// Converts `value` to the attributes of an item. The serialization of `value` must leave out fields that are `None`,
/// because the table stores no NULL.
pub fn to_item(value: &impl Serialize) -> Item {
    // The structs contain only strings, numbers, maps and lists, which DynamoDB can always represent.
    serde_dynamo::to_item(value).expect("DynamoDB can represent each field of the struct")
}

/// Reads a `T` from the attributes of `item`. Fails with [`TableError::Unreadable`] if an attribute is missing or has
/// another type.
pub fn from_item<T: DeserializeOwned>(item: &Item) -> Result<T, TableError> {
    // Reading with the names of the attributes takes more time, so read without them first. Read again with the names
    // only after an error, because the error message contains the name.
    serde_dynamo::from_item(item.clone()).or_else(|_| from_item_with_names(item))
}

/// Reads a `T` like [`from_item`]. An error contains the name of the attribute.
fn from_item_with_names<T: DeserializeOwned>(item: &Item) -> Result<T, TableError> {
    let attributes = serde_dynamo::Deserializer::from_attribute_value(serde_dynamo::AttributeValue::M(
        serde_dynamo::Item::from(item.clone()).into(),
    ));
    serde_path_to_error::deserialize(attributes)
        .map_err(|error| TableError::unreadable(key_of_item(item), unreadable::reason_unreadable(&error)))
}

/// Returns the key of `item`. A missing `PK` or `SK` becomes `?`, so that error messages can also contain the key of a
/// damaged item.
pub fn key_of_item(item: &Item) -> Key {
    let text = |name: &str| match item.get(name) {
        Some(AttributeValue::S(text)) => text.clone(),
        _ => "?".to_owned(),
    };
    Key { pk: text("PK"), sk: text("SK") }
}

/// Returns the value of the TTL attribute, in seconds since 1970, for an item that is created at the time `from` and
/// stored for the time `retention`.
pub fn expiry_timestamp(from: DateTime<Utc>, retention: TimeDelta) -> i64 {
    from.timestamp().saturating_add(retention.num_seconds())
}

/// Returns whether `item` has expired at `now`: its TTL has passed. DynamoDB deletes an expired item only within a few
/// days, so requests may still return it.
pub fn is_expired(item: &Item, now: DateTime<Utc>) -> bool {
    let expires = item.get(TIME_TO_LIVE).and_then(|at| at.as_n().ok()?.parse::<i64>().ok());
    expires.is_some_and(|expires| expires <= now.timestamp())
}
