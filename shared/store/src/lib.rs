//! The payments table: one DynamoDB table with two sparse indexes, and one function for each access pattern.
//!
//! The rules:
//! - The new content of a subscription is computed from the stored item and written on condition that the item is
//!   unchanged ([`dynamo::DynamoTable::rewrite_item`]). No PutItem replaces a subscription after its creation. A claim
//!   (`claims`) is the only write of a subscription that does not read the stored item first.
//! - Only `keys/` contains the format of keys; only `items/` contains attribute names and types.
//! - A failed condition is a result, not an error.
//! - Every function that sends a request returns a [`TableError`] if the request fails or a stored item cannot be read.
//!   The documentation of a function lists only its other errors.
//!
//! # Reading order
//! Each folder is private, and its items are names of this crate, such as [`Claim`]. A folder imports only from folders
//! above it in this list.
//! 1. `table`: the table, on which all access patterns are methods, and the copy of the policy that each process keeps.
//! 2. `keys`, `items`: the format of the stored items.
//! 3. `settings`: the indexes, the configuration, the item of the settings, the policy, the number of shards, and the
//!    check that the table is not a restored backup.
//! 4. `runs`: the run records with their row counts, the lease of a daily execution, the charge total of a day, what
//!    support has refunded on a day, and the hourly limits of requests.
//! 5. `entities`: the access patterns of each entity. `claims` is the conditional write after which one worker may charge
//!    a payment; `settlements` writes the new state of a subscription with its receipt or records, in one transaction.
//! 6. `scans`: reading the whole table, for audits, exports and copies.
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
//! let table = TableConfig::read(Env::of_process())?.connect(&store::load_sdk_config().await);
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
pub use items::{DueEntry, DueIndexPosition, EventSubscriber, Lane, WaitingDelivery, owner_of_removable_item};
pub use keys::{SubscriptionKey, key_of_heartbeat};
pub use runs::counts::{OutcomeCounts, PaymentCounts, ReminderCounts, RunCounts};
pub use runs::execution_lease::ExecutionLeaseOutcome;
pub use runs::hourly_limits::LimitedOperation;
pub use runs::run_records::{RunEnd, RunRecord, RunSums, StoredRuns};
pub use runs::support_refunds::DailyRefundLimit;
pub use scans::account_partitions::{
    AccountPartition, AccountPartitions, AlteredItem, CheckedItems, POSITION_SEPARATOR, RecordExpiry,
};
pub use scans::other_items::{NamedOwner, check_other_item, find_named_owner};
pub use scans::scan::ScannedItem;
pub use settings::config::{ENDPOINT, SHARDS, TABLE, TableConfig, TableSetUpError, VARIABLES};
pub use settings::copied_table::OLDER_TABLE;
pub use settings::policy::{MAX_COPY_AGE, SetPolicyOutcome};
pub use settings::reshard::{MAX_SHARDS, PeakLoad, RequiredShards, ReshardOutcome};
pub use settings::schema::{GSI_1, GSI_2, SCHEMA};
pub use settings::settings_item::Settings;
pub use table::batch::Batch;
pub use table::payments_table::{PaymentsSchema, Table};
pub use table::policy_copy::POLICY_DIFFERS_MESSAGE;

pub use dynamo::{
    Cursor, FaultyItem, IDEMPOTENCY_RETENTION, IdempotencyKeyReuse, IdempotentRequest, Item, ItemFault, Items, Key,
    KeySchema, NotRewritten, Page, Paging, StoredResponse, TIME_TO_LIVE, TableError, aws_request_timeouts,
    create_dynamodb_client, ignore_refusal, key_of_item, load_sdk_config,
};
