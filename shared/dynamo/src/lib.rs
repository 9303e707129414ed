//! DynamoDB plumbing for both tables: schemas, entities, keys, expressions, requests, errors, back-off, transactions, scans and
//! queries, leases, and the write rule. It knows no entity of its own.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod backoff;
mod connect;
mod describe;
mod entity;
mod error;
mod expression;
mod idempotency;
mod instant;
mod item;
mod items;
mod key;
mod lease;
mod page;
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
pub use connect::{dynamodb, sdk, timeouts};
pub use describe::TIME_TO_LIVE;
pub use entity::{Entity, name_len, name_of};
pub use error::TableError;
pub use expression::{difference, names};
pub use idempotency::{IDEMPOTENCY_KEPT, IdempotentRequest, KeptAnswer, Replayed};
pub use instant::Instant;
pub use item::{expiry, from_item, is_expired, key_of, to_item};
pub use items::Items;
pub use key::Key;
pub use lease::{Holder, Lease, Leased, Terms};
pub use page::{Cursor, List, Page, Paging};
pub use query::Query;
pub use requests::{ABSENT, PRESENT, TransactAnswer, UpdateAnswer, n, s, values};
pub use rewrite::{Next, Rewritten, Versioned, versioned_after};
pub use scan::Scan;
pub use schema::{Index, KeyAttribute, Keys, Schema};
pub use sharding::shard_of;

/// Attributes of an item by name.
pub type Item = HashMap<String, AttributeValue>;

/// Values of an expression by their placeholders.
pub type Values = HashMap<String, AttributeValue>;

/// A table of the schema `S`, and the requests to it. Only what is [`Versioned`] in `S` is written to it under the write rule.
#[derive(Clone, Debug)]
pub struct Dynamo<S> {
    client: Client,
    name: String,
    schema: PhantomData<fn() -> S>,
}

impl<S> Dynamo<S> {
    /// The table `name`, reached through `client`.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self { client, name: name.into(), schema: PhantomData }
    }

    /// The SDK client, for what concerns no item: creating and describing the table, reading it whole.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
