//! How things are written down: persistence structs, apart from the domain's, with the attribute names of the design.

mod account;
mod due;
mod instant;
mod receipt;
mod subscription;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) use account::AccountItem;
pub(super) use due::DueItem;
pub use due::{Due, Position};
pub(super) use instant::Instant;
pub(super) use receipt::{AttemptRecordItem, ReceiptItem, WaivedPeriodItem};
pub(super) use subscription::SubscriptionItem;

use super::{Item, Key, TableError};

/// Writes `value` as attributes; what is `None` is absent.
pub(super) fn to_item(value: &impl Serialize) -> Item {
    // Our own structs of strings, numbers and maps: there is nothing in them that could fail.
    serde_dynamo::to_item(value).expect("persistence structs are representable")
}

/// Reads `T` from attributes.
pub(super) fn from_item<T: DeserializeOwned>(item: &Item) -> Result<T, TableError> {
    serde_dynamo::from_item(item.clone()).map_err(|error| TableError::unreadable(key_of(item), error))
}

/// The key of `item`, as far as it has one.
pub(super) fn key_of(item: &Item) -> Key {
    let text = |name: &str| match item.get(name) {
        Some(AttributeValue::S(text)) => text.clone(),
        _ => "?".to_owned(),
    };
    Key { pk: text("PK"), sk: text("SK") }
}
