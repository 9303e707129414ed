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

mod entities;
mod items;
mod keys;
mod runs;
mod scans;
mod settings;
mod table;

pub use entities::accounts::{ChangeAccountOutcome, PutAccountOutcome};
pub use entities::actions::ChangeRecords;
pub use entities::card_links::{CardLink, StoredCardLink};
pub use entities::changes::ChangeOutcome;
pub use entities::claims::{Claim, ClaimOutcome};
pub use entities::creations::{AccountOfNewSubscriptions, AccountState, NewSubscriptions};
pub use entities::due::{DueList, DuePage, DuePayment, DueRow, DueSubscription};
pub use entities::erasures::StoredAccount;
pub use entities::notice_claims::NoticeClaimOutcome;
pub use entities::stream::read_stream_image;
pub use entities::subscriptions::{CreateOutcome, UpdateOutcome};
pub use items::{Due, EventSubscriber, Lane, Position, WaitingDelivery, owner_of_removable_item};
pub use keys::{SubscriptionKey, key_of_heartbeat};
pub use runs::counts::{Counts, PaymentCounts, ReminderCounts, RunCounts};
pub use runs::execution_lease::ExecutionLeaseOutcome;
pub use runs::hourly_limits::LimitedOperation;
pub use runs::run_records::{RunEnd, RunRecord, RunSums, StoredRuns};
pub use runs::support_refunds::DailyRefundLimit;
pub use scans::account_partitions::{
    AccountPartition, AccountPartitions, AlteredItem, CheckedItems, POSITION_SEPARATOR, RecordExpiry,
};
pub use scans::other_items::{NamedOwner, check_other_item, named_owner};
pub use scans::scan::ScannedItem;
pub use settings::config::{ENDPOINT, SHARDS, TABLE, TableConfig, TableSetUpError, VARIABLES};
pub use settings::copied_table::OLDER_TABLE;
pub use settings::policy::{MAX_COPY_AGE, SetPolicyOutcome};
pub use settings::reshard::{MAX_SHARDS, PeakLoad, RequiredShards, ReshardOutcome};
pub use settings::schema::{GSI_1, GSI_2, SCHEMA};
pub use settings::settings_item::Settings;
pub use table::batch::Batch;
pub use table::payments_table::{Payments, Table};
pub use table::policy_copy::POLICY_DIFFERS_MESSAGE;

pub use dynamo::{
    Cursor, FaultyItem, IDEMPOTENCY_RETENTION, IdempotentRequest, Item, ItemFault, Items, Key, KeySchema, NotRewritten,
    Page, Paging, Replayed, StoredResponse, TIME_TO_LIVE, TableError, create_dynamodb_client, ignore_refusal, key_of,
    load_sdk_config, timeouts,
};
