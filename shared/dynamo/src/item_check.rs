//! The check of single items: each must be readable, contain what this program would store with the same content, and
//! expire within the time of its kind.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};

use crate::{Entity, Item, Key, TIME_TO_LIVE, TableError, key_of_item};

/// The time that an item may expire after its retention: clocks of machines differ, and a checkout page expires a day
/// after the creation of its setup.
const TOLERANCE: TimeDelta = TimeDelta::days(2);

/// Reads an item. Returns the item that this program would store with the same content, as far as the content
/// determines it.
pub type ReadItem = fn(&Item) -> Result<Item, TableError>;

/// A kind of item: the prefixes of the partition key and of the sort key, the function that reads the item, and the
/// longest time until the item expires (`None` if it never expires).
pub type ItemKind = (&'static str, &'static str, ReadItem, Option<TimeDelta>);

/// What is wrong with an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemFault {
    /// The item cannot be read.
    Unreadable,
    /// The item differs from the item that this program would store with the same content.
    Altered,
    /// The item expires at an impossible time, or does not expire although it should.
    Expiry,
    /// The item relates an entity to another entity or to a list, and contradicts the entity's own item. Or an item
    /// that the entity requires does not exist.
    Relation,
}

/// An item that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultyItem {
    pub key: Key,
    pub fault: ItemFault,
    /// The description of the fault.
    pub what: String,
}

/// Returns whether an item with the key `key` has the kind `kind`.
pub fn is_of_kind(key: &Key, (pk, sk, ..): &ItemKind) -> bool {
    key.pk.starts_with(pk) && key.sk.starts_with(sk)
}

/// Returns what is wrong with `item` at the time `now`. `kinds` are all kinds of items; the first kind that matches the
/// key of the item applies.
pub fn check_item<'a>(
    kinds: impl IntoIterator<Item = &'a ItemKind>,
    item: &Item,
    now: DateTime<Utc>,
) -> Vec<FaultyItem> {
    let key = key_of_item(item);
    let faulty = |fault, what: String| FaultyItem { key: key.clone(), fault, what };
    let Some((_, _, read, retention)) = kinds.into_iter().find(|kind| is_of_kind(&key, kind)) else {
        return vec![faulty(ItemFault::Unreadable, "its key has an unknown prefix".to_owned())];
    };
    let mut faults = Vec::new();
    match read(item) {
        Ok(expected) => {
            let altered = altered_attributes(item, &expected, retention.is_some());
            if !altered.is_empty() {
                faults.push(faulty(ItemFault::Altered, format!("unexpected: {}", altered.join(", "))));
            }
        }
        Err(error) => faults.push(faulty(ItemFault::Unreadable, error.to_string())),
    }
    let fault_of_expiry = retention.and_then(|retention| fault_of_expiry(item, now + retention + TOLERANCE));
    faults.extend(fault_of_expiry.map(|what| faulty(ItemFault::Expiry, what)));
    faults
}

/// Returns the item that this program would store for the entity in `item`.
pub fn entity_item<Schema, T: Entity<Schema>>(item: &Item) -> Result<Item, TableError> {
    Ok(T::from_item(item)?.to_item())
}

/// Returns the names of the stored attributes that differ from `expected`, sorted. An absent attribute that has a
/// default is no difference. If the item `expires` and its content does not determine when, any TTL is accepted.
fn altered_attributes(stored: &Item, expected: &Item, expires: bool) -> Vec<String> {
    let is_free = |name: &str| expires && name == TIME_TO_LIVE && !expected.contains_key(TIME_TO_LIVE);
    let altered = stored.iter().filter(|(name, value)| !is_free(name) && expected.get(*name) != Some(*value));
    altered.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns a description if `item` does not expire, or expires after `latest`.
fn fault_of_expiry(item: &Item, latest: DateTime<Utc>) -> Option<String> {
    let ttl = item.get(TIME_TO_LIVE).and_then(|ttl: &AttributeValue| ttl.as_n().ok()?.parse().ok());
    match ttl.and_then(|seconds| DateTime::from_timestamp(seconds, 0)) {
        None => Some("it never expires, because it has no TTL that can be read".to_owned()),
        Some(at) => (at > latest).then(|| format!("it expires at {at}, but items of its kind expire by {latest}")),
    }
}
