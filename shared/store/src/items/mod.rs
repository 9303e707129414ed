//! How things are written down: persistence structs, apart from the domain's, with the attribute names of the design.

mod account;
mod attempt_record;
mod dispute;
mod due;
mod finding;
mod receipt;
mod refund;
mod setup;
pub(super) mod subscription;
mod waived_period;
mod webhook;

pub(super) use due::DueItem;
pub use due::{Due, Lane, Position};
pub(super) use finding::listed;

use super::{Key, Payments, TableError, keys};
use billing::{Account, AccountId, Delivery, Dispute, Refund, Setup, Subscription, SubscriptionId, WebhookEndpoint};

dynamo::versioned!(Payments: Account, Delivery, Dispute, Refund, Setup, Subscription, WebhookEndpoint);

/// The account and the subscription that a record with this key is of.
fn of_record(key: Key) -> Result<(AccountId, SubscriptionId), TableError> {
    keys::of_record(&key).ok_or_else(|| TableError::unreadable(key, "its key names no subscription"))
}
