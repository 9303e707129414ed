//! How things are written down: persistence structs, apart from the domain's, with the attribute names of the design.

mod account;
mod attempt_record;
mod dispute;
mod due;
mod finding;
mod instant;
mod receipt;
mod refund;
mod setup;
mod subscription;
mod unreadable;
mod waived_period;
mod webhook;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) use account::AccountItem;
pub(super) use attempt_record::AttemptRecordItem;
pub(super) use dispute::DisputeItem;
pub(super) use due::DueItem;
pub use due::{Due, Lane, Position};
pub(super) use finding::FindingItem;
pub(crate) use instant::Instant;
pub(super) use receipt::ReceiptItem;
pub(super) use refund::RefundItem;
pub(super) use setup::SetupItem;
pub(super) use subscription::{SubscriptionItem, TermsItem};
pub(super) use waived_period::WaivedPeriodItem;
pub(super) use webhook::{DeliveryItem, WebhookEndpointItem};

use super::{Item, Key, TableError, keys};
use crate::billing::{AccountId, SubscriptionId};

/// Writes `value` as attributes; what is `None` is absent.
pub(crate) fn to_item(value: &impl Serialize) -> Item {
    // Our own structs of strings, numbers and maps: there is nothing in them that could fail.
    serde_dynamo::to_item(value).expect("persistence structs are representable")
}

/// Reads `T` from attributes.
pub(crate) fn from_item<T: DeserializeOwned>(item: &Item) -> Result<T, TableError> {
    let attributes = serde_dynamo::Deserializer::from_attribute_value(serde_dynamo::AttributeValue::M(
        serde_dynamo::Item::from(item.clone()).into(),
    ));
    serde_path_to_error::deserialize(attributes)
        .map_err(|error| TableError::unreadable(key_of(item), unreadable::reason(&error)))
}

/// The key of `item`, as far as it has one.
pub(crate) fn key_of(item: &Item) -> Key {
    let text = |name: &str| match item.get(name) {
        Some(AttributeValue::S(text)) => text.clone(),
        _ => "?".to_owned(),
    };
    Key { pk: text("PK"), sk: text("SK") }
}

/// The account and the subscription that a record with this key is of.
fn of_record(pk: String, sk: String) -> Result<(AccountId, SubscriptionId), TableError> {
    let key = Key { pk, sk };
    keys::of_record(&key).ok_or_else(|| TableError::unreadable(key, "its key names no subscription"))
}

/// TTL attributes are whole seconds since 1970.
fn expiry(from: DateTime<Utc>, kept: TimeDelta) -> i64 {
    from.timestamp().saturating_add(kept.num_seconds())
}
