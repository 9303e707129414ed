//! The payments table: one DynamoDB table, two sparse indexes, and every access pattern by its name.
//!
//! The rules:
//! - A subscription is written only from the item it was computed from ([`dynamo::Dynamo::rewrite`]). Nothing puts a whole
//!   subscription after its creation. The one write that does not start from the item is a claim ([`claims`]).
//! - Keys are written in `keys.rs` only; attribute names and types in `items/` only.
//! - A refused condition is a result, not an error.
//!
//! # Reading order
//! 1. [`schema`] and [`subscriptions`]: the table, its indexes, and its main item.
//! 2. [`due`] and [`claims`]: what is due in a shard, and the conditional write by which one worker gets to charge it.
//! 3. [`settlements`]: the next state of a subscription with its receipt or records, in one transaction.
//! 4. [`runs`], [`execution_lease`] and [`day_total`]: the records of runs, the lease of a day, and its total.
//! 5. [`receipts`], [`records`], [`refunds`], [`disputes`], [`findings`]: what is kept about payments.
//! 6. [`scan`], [`partitions`], [`in_order`]: the whole table, for audits, lists and copies.
//!
//! There is no second implementation: on one machine the same SDK speaks to an embedded engine.
//!
//! # Example
//! ```no_run
//! # async fn example(account: billing::AccountId) -> Result<(), Box<dyn std::error::Error>> {
//! use config::Env;
//! use store::{Paging, TableConfig};
//!
//! let table = TableConfig::read(Env::process())?.over(&store::sdk().await);
//! let page = table.get_subscriptions_by_account(&account, &Paging::all()).await?;
//! for subscription in page.into_items()? {
//!     println!("{} is due on {}", subscription.id, subscription.due_on);
//! }
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod accounts;
pub mod batch;
pub mod changes;
pub mod claims;
pub mod config;
pub mod counts;
pub mod cursors;
pub mod day_total;
pub mod disputes;
pub mod due;
pub mod execution_lease;
pub mod findings;
pub mod in_order;
pub mod inbound_events;
mod items;
mod keys;
pub mod notices;
pub mod partitions;
pub mod receipts;
pub mod records;
pub mod refunds;
pub mod runs;
pub mod scan;
pub mod schema;
pub mod server_clock;
pub mod settings;
pub mod settlements;
pub mod setups;
pub mod sharding;
pub mod stream;
pub mod subscriptions;
pub mod webhooks;

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
pub use execution_lease::Taken;
pub use items::{Due, Lane, Position};
pub use keys::SubscriptionKey;
pub use notices::NoticeClaimed;
pub use partitions::{Partition, Partitions};
pub use runs::{RunEnd, RunRecord, RunSums};
pub use scan::Scanned;
pub use schema::{GSI_1, GSI_2, SCHEMA};
pub use settings::Settings;
pub use sharding::{Demand, MAX_SHARDS, Needed, Resharded};
pub use stream::image;
pub use subscriptions::{CreateMany, Created, Updated};

pub use dynamo::{
    Cursor, IDEMPOTENCY_KEPT, IdempotentRequest, Item, KeptAnswer, Key, Keys, Page, Paging, Replayed, Rewritten,
    TableError, dynamodb, sdk, timeouts,
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
