//! The payments table: one DynamoDB table with two sparse indexes, and one function for each access pattern.
//!
//! The rules:
//! - The new content of a subscription is computed from the stored item and written on condition that the item is
//!   unchanged ([`dynamo::Dynamo::rewrite`]). No PutItem replaces a subscription after its creation. A claim
//!   (`claims`) is the only write of a subscription that does not read the stored item first.
//! - Only `keys/` contains the format of keys; only `items/` contains attribute names and types.
//! - A failed condition is a result, not an error.
//! - Every function that sends a request returns a [`TableError`] if the request fails or a stored item cannot be read.
//!   The documentation of a function lists only its other errors.
//!
//! # Reading order
//! Each module is private, and its items are names of this crate, such as [`Claim`].
//! 1. `config`, `schema`, `settings`, `policy`: the configuration of the table, its indexes, the item of its settings, and the
//!    copy of the policy in it. `keys`,
//!    `items`: the format of the stored items. `copied_table`: the check that the table is not a restored backup.
//! 2. `accounts`, `subscriptions`, `creations`, `changes`: the two main items, and how a subscription is created and
//!    changed.
//! 3. `batch`, `due`, `claims`: the two batches, the subscriptions that are due in a shard, and the conditional write
//!    after which one worker may charge a payment. `reshard`: more shards.
//! 4. `settlements`: the new state of a subscription with its receipt or records, in one transaction.
//! 5. `runs`, `counts`, `execution_lease`, `day_total`, `server_time`: the run records with their row counts, the lease
//!    of a daily execution, the charge total of a day, and the check of a machine's clock.
//! 6. `receipts`, `receipt_retention`, `records`, `refunds`, `disputes`, `findings`: the stored records of payments.
//!    `support_refunds`: what support has refunded on a day.
//! 7. `payment_method_setups`, `card_links`, `limits`: how a customer enters a card, and how often.
//! 8. `stream`, `notice_claims`, `outbound_webhooks`, `waiting_deliveries`, `inbound_events`: the changes of the table,
//!    the mails and the webhooks about them, and the webhook events that were received.
//! 9. `audits`, `reconciliations`: the stored results of audits, and of comparisons with the gateway. `actions`: the log
//!    of the changes that people and programs make.
//! 10. `erasures`: the erasure of an account.
//! 11. `scan`, `account_partitions`, `sorted_by_account`: reading the whole table, for audits, exports and copies.
//!     `cursors`: the position in a list. `other_items`: the check of the items outside of accounts.
//!
//! Local use and tests need no second implementation: the same code sends its requests to the embedded engine, a local
//! replacement of DynamoDB.
//!
//! # Example
//! ```no_run
//! # async fn example(account: billing::AccountId) -> Result<(), Box<dyn std::error::Error>> {
//! use config::Env;
//! use store::{Paging, TableConfig};
//!
//! let table = TableConfig::read(Env::process())?.connect(&store::load_sdk_config().await);
//! let page = table.get_subscriptions_by_account(&account, &Paging::all()).await?;
//! for subscription in page.into_items()? {
//!     println!("{} is due on {}", subscription.id, subscription.due_on);
//! }
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod account_partitions;
mod accounts;
mod actions;
mod audits;
mod batch;
mod card_links;
mod changes;
mod claims;
mod config;
mod copied_table;
mod counts;
mod creations;
mod cursors;
mod day_total;
mod disputes;
mod due;
mod erasures;
mod execution_lease;
mod findings;
mod inbound_events;
mod items;
mod keys;
mod limits;
mod notice_claims;
mod other_items;
mod outbound_webhooks;
mod payment_method_setups;
mod policy;
mod receipt_retention;
mod receipts;
mod reconciliations;
mod records;
mod refunds;
mod reshard;
mod runs;
mod scan;
mod schema;
mod server_time;
mod settings;
mod settlements;
mod sorted_by_account;
mod stream;
mod subscriptions;
mod support_refunds;
mod waiting_deliveries;

use std::ops::Deref;

use ::config::ConfiguredPolicy;
use aws_sdk_dynamodb::Client;
use dynamo::Dynamo;

pub use account_partitions::{
    AccountPartition, AccountPartitions, AlteredItem, CheckedItems, POSITION_SEPARATOR, RecordExpiry,
};
pub use accounts::{ChangeAccountOutcome, PutAccountOutcome};
pub use actions::ChangeRecords;
pub use batch::Batch;
pub use card_links::{CardLink, StoredCardLink};
pub use changes::ChangeOutcome;
pub use claims::{Claim, ClaimOutcome};
pub use config::*;
pub use copied_table::OLDER_TABLE;
pub use counts::{Counts, PaymentCounts, ReminderCounts, RunCounts};
pub use creations::{AccountOfNewSubscriptions, AccountState, NewSubscriptions};
pub use due::{DueList, DuePage, DuePayment, DueRow, DueSubscription};
pub use erasures::StoredAccount;
pub use execution_lease::ExecutionLeaseOutcome;
pub use items::{Due, EventSubscriber, Lane, Position, WaitingDelivery, owner_of_removable_item};
pub use keys::{SubscriptionKey, key_of_heartbeat};
pub use limits::LimitedOperation;
pub use notice_claims::NoticeClaimOutcome;
pub use other_items::{NamedOwner, check_other_item, named_owner};
pub use policy::{MAX_COPY_AGE, POLICY_DIFFERS_MESSAGE, SetPolicyOutcome};
pub use reshard::{MAX_SHARDS, PeakLoad, RequiredShards, ReshardOutcome};
pub use runs::{RunEnd, RunRecord, RunSums, StoredRuns};
pub use scan::ScannedItem;
pub use schema::{GSI_1, GSI_2, SCHEMA};
pub use settings::Settings;
pub use stream::read_stream_image;
pub use subscriptions::{CreateOutcome, UpdateOutcome};
pub use support_refunds::DailyRefundLimit;

use policy::PolicyCopy;

pub use dynamo::{
    Cursor, FaultyItem, IDEMPOTENCY_RETENTION, IdempotentRequest, Item, ItemFault, Items, Key, KeySchema, NotRewritten,
    Page, Paging, Replayed, StoredResponse, TIME_TO_LIVE, TableError, create_dynamodb_client, ignore_refusal, key_of,
    load_sdk_config, timeouts,
};

/// The marker type of this table's schema: the entities that implement `Entity<Payments>` are stored in this table.
#[derive(Clone, Copy, Debug)]
pub struct Payments;

/// The payments table, with one function for each access pattern.
#[derive(Clone, Debug)]
pub struct Table {
    dynamo: Dynamo<Payments>,
    policy: PolicyCopy,
}

impl Table {
    /// Returns the table `name`, which is accessed through `client`. Until the stored policy is read, the default policy
    /// is used.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self { dynamo: Dynamo::new(client, name), policy: PolicyCopy::new(ConfiguredPolicy::default()) }
    }
}

/// Gives access to the requests of [`Dynamo`] that are the same for all kinds of items, such as Get, Put and Scan.
impl Deref for Table {
    type Target = Dynamo<Payments>;

    fn deref(&self) -> &Dynamo<Payments> {
        &self.dynamo
    }
}
