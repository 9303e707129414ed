//! The table: one DynamoDB table, two sparse indexes, and every access pattern by its name.
//!
//! What always holds here:
//! - A subscription is only written from the item it was computed from (`rewrite.rs`). Nothing puts a whole
//!   subscription after its creation. The one write that does not start from the item is a claim (`claims.rs`).
//! - Keys are written in `keys.rs` alone; attribute names and types in `items/` alone.
//! - A refused condition is an answer, not an error.
//!
//! Deliberately absent: a second implementation. On one machine the same SDK speaks to an embedded engine.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod accounts;
mod batch;
mod changes;
mod charged;
mod claims;
mod config;
mod counts;
mod cursors;
mod disputes;
mod due;
mod executions;
mod findings;
mod in_order;
mod items;
mod keys;
mod notices;
mod partitions;
mod receipts;
mod records;
mod refunds;
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

use std::ops::Deref;

use aws_sdk_dynamodb::Client;
use chrono::TimeDelta;
use dynamo::Dynamo;

pub use accounts::PutAccount;
pub use batch::Batch;
pub use changes::Changed;
pub use claims::{Claim, Claimed};
pub use config::*;
pub use counts::{Counts, PaymentCounts, ReminderCounts, RunCounts};
pub use due::{DueList, DuePage, Row};
pub use executions::Taken;
pub use items::{Due, Lane, Position};
pub use keys::SubscriptionKey;
pub use notices::NoticeClaimed;
pub use partitions::{Partition, Partitions};
pub use runs::{RunEnd, RunRecord, RunSums};
pub use scan::Scanned;
pub use schema::{GSI_1, GSI_2, Projection, SCHEMA, Schema};
pub use settings::Settings;
pub use sharding::{Demand, MAX_SHARDS, Needed, Resharded};
pub use stream::image;
pub use subscriptions::{CreateMany, Created, Updated};

pub use dynamo::{
    Cursor, IDEMPOTENCY_KEPT, IdempotentRequest, Item, KeptAnswer, Key, Page, Paging, Replayed, Rewritten, TableError,
    dynamodb, sdk, timeouts,
};

/// What is stored in this table, of all that may be written to one.
#[derive(Clone, Copy, Debug)]
pub struct Payments;

/// The table and its access patterns.
#[derive(Clone, Debug)]
pub struct Table {
    dynamo: Dynamo<Payments>,
    receipts_kept: TimeDelta,
}

impl Table {
    /// The table `name`, reached through `client`; receipts and other records are kept for `receipts_kept`.
    pub fn new(client: Client, name: impl Into<String>, receipts_kept: TimeDelta) -> Self {
        Self { dynamo: Dynamo::new(client, name), receipts_kept }
    }

    /// How long receipts and other records are kept.
    pub fn receipts_kept(&self) -> TimeDelta {
        self.receipts_kept
    }
}

/// Requests that concern no entity.
impl Deref for Table {
    type Target = Dynamo<Payments>;

    fn deref(&self) -> &Dynamo<Payments> {
        &self.dynamo
    }
}
