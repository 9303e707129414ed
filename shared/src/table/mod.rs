//! The table: one DynamoDB table, two sparse indexes, and every access pattern by its name.
//!
//! What always holds here:
//! - A subscription is only written from the item it was computed from (`rewrite.rs`). Nothing puts a whole
//!   subscription after its creation. The one write that does not start from the item is a claim (`claims.rs`).
//! - Keys are written in `keys.rs` alone; attribute names and types in `items/` alone.
//! - A refused condition is an answer, not an error.
//!
//! Deliberately absent: a second implementation. On one machine the same SDK speaks to an embedded engine.

mod accounts;
mod backoff;
mod batch;
mod changes;
mod charged;
mod claims;
mod config;
mod connect;
mod counts;
mod disputes;
mod due;
mod error;
mod executions;
mod expression;
mod findings;
mod idempotency;
mod in_order;
mod items;
mod keys;
mod notices;
mod page;
mod partitions;
mod receipts;
mod records;
mod refunds;
mod requests;
mod rewrite;
mod runs;
mod scan;
mod schema;
mod settings;
mod settlements;
mod setups;
mod sharding;
mod stream;
mod subscriptions;
mod time;
mod told;
mod webhooks;

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;

pub use accounts::PutAccount;
pub use batch::Batch;
pub use changes::Changed;
pub use claims::{Claim, Claimed};
pub use config::*;
pub use connect::{dynamodb, sdk, timeouts};
pub use counts::{Counts, PaymentCounts, PaymentOutcome, ReminderCounts, ReminderOutcome, RunCounts};
pub use due::{DueList, DuePage, Row};
pub use error::TableError;
pub use executions::Taken;
pub(crate) use expression::names;
pub use idempotency::{IDEMPOTENCY_KEPT, IdempotentRequest, KeptAnswer, Replayed};
pub use items::{Due, Lane, Position};
pub(crate) use items::{Instant, from_item, key_of, to_item};
pub use keys::{Key, SubscriptionKey};
pub use notices::NoticeClaimed;
use page::List;
pub use page::{Cursor, Page, Paging};
pub use partitions::{Partition, Partitions};
pub(crate) use requests::{ABSENT, PRESENT, TransactAnswer, UpdateAnswer, n, s};
pub use rewrite::Rewritten;
pub(crate) use rewrite::Versioned;
pub use runs::{RunEnd, RunRecord, RunSums};
pub use scan::Scanned;
pub use schema::{GSI_1, GSI_2, Projection, SCHEMA, Schema};
pub use settings::Settings;
pub use sharding::{Demand, MAX_SHARDS, Needed, Resharded};
pub use stream::image;
pub use subscriptions::{CreateMany, Created, Updated};

/// Attributes of an item by name.
pub type Item = HashMap<String, AttributeValue>;

/// The table and its access patterns.
#[derive(Clone, Debug)]
pub struct Table {
    client: Client,
    name: String,
    receipts_kept: TimeDelta,
}

impl Table {
    /// The table `name`, reached through `client`; receipts and other records are kept for `receipts_kept`.
    pub fn new(client: Client, name: impl Into<String>, receipts_kept: TimeDelta) -> Self {
        Self { client, name: name.into(), receipts_kept }
    }

    /// The SDK client, for what concerns no item: creating and describing the table, reading it whole.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long receipts and other records are kept.
    pub fn receipts_kept(&self) -> TimeDelta {
        self.receipts_kept
    }
}
