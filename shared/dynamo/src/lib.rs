//! Access to DynamoDB for both tables (payments and orders): schemas, entities, keys, expressions, requests, errors,
//! retries with back-off, transactions, scans and queries, leases, idempotency records, and the write rule
//! ([`DynamoTable::rewrite_item`]).
//!
//! This crate defines no entity: the crates `store` and `orders` define the entities of their tables.
//!
//! Every function that sends a request returns [`TableError::Request`] if the request fails, and
//! [`TableError::Unreadable`] if a stored item cannot be read. The documentation of a function lists only its other
//! errors.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod backoff;
mod batch_get;
mod connect;
mod describe;
mod entity;
mod error;
mod expression;
mod idempotency;
mod instant;
mod item;
mod item_check;
mod items;
mod key;
mod lease;
mod list_page;
mod query;
mod requests;
mod rewrite;
mod scan;
mod schema;
mod sharding;
mod unreadable;

use std::collections::HashMap;
use std::marker::PhantomData;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;

pub use backoff::Backoff;
pub use connect::{aws_request_timeouts, create_dynamodb_client, load_sdk_config};
pub use describe::TIME_TO_LIVE;
pub use entity::{Entity, attribute_name, attribute_name_len};
pub use error::TableError;
pub use expression::{build_difference, collect_attribute_names};
pub use idempotency::{
    IDEMPOTENCY_RECORDS, IDEMPOTENCY_RETENTION, IdempotencyKeyReuse, IdempotentRequest, StoredResponse,
    check_idempotency_record,
};
pub use instant::Instant;
pub use item::{expiry_timestamp, from_item, is_expired, key_of_item, to_item};
pub use item_check::{FaultyItem, ItemFault, ItemKind, check_item, entity_item, is_of_kind};
pub use items::Items;
pub use key::Key;
pub use lease::{Lease, LeaseHolder, LeaseResult, LeaseTerms};
pub use list_page::{Cursor, Page, Paging, PrefixQuery};
pub use query::Query;
pub use requests::{ABSENT, FailedConditions, PRESENT, TransactionOutcome, UpdateItemOutcome, n, s, values};
pub use rewrite::{ItemRewrite, NotRewritten, VersionedEntity, ignore_refusal, with_next_version};
pub use scan::Scan;
pub use schema::{IndexSchema, KeyAttributeDefinition, KeySchema, TableSchema};
pub use sharding::shard_of;

/// The attributes of an item, or of a part of it such as its key, by attribute name.
pub type Item = HashMap<String, AttributeValue>;

/// The values of an expression's placeholders, such as `:now`, by placeholder.
pub type Values = HashMap<String, AttributeValue>;

/// A table, and the requests to it. `Schema` is a marker type: an entity that implements [`VersionedEntity`] for one table's
/// marker cannot be written to another table.
#[derive(Clone, Debug)]
pub struct DynamoTable<Schema> {
    client: Client,
    name: String,
    schema: PhantomData<fn() -> Schema>,
}

impl<Schema> DynamoTable<Schema> {
    /// Returns the table `name`, which is accessed through `client`.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self { client, name: name.into(), schema: PhantomData }
    }

    /// Returns the SDK client, for requests that concern no single item, such as creating, describing or scanning the
    /// table.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the name of the table.
    pub fn name(&self) -> &str {
        &self.name
    }
}
