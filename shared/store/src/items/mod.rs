//! How things are written down: persistence structs, apart from the domain's, with the attribute names of the design.

mod account;
mod attempt_record;
mod dispute;
mod due;
mod finding;
mod receipt;
mod refund;
mod setup;
mod subscription;
mod waived_period;
mod webhook;

pub(super) use account::AccountItem;
pub(super) use attempt_record::AttemptRecordItem;
pub(super) use dispute::DisputeItem;
pub(super) use due::DueItem;
pub use due::{Due, Lane, Position};
pub(super) use finding::FindingItem;
pub(super) use receipt::ReceiptItem;
pub(super) use refund::RefundItem;
pub(super) use setup::SetupItem;
pub(super) use subscription::{SubscriptionItem, TermsItem};
pub(super) use waived_period::WaivedPeriodItem;
pub(super) use webhook::{DeliveryItem, WebhookEndpointItem};

use super::{Key, TableError, keys};
use billing::{AccountId, SubscriptionId};

/// The account and the subscription that a record with this key is of.
fn of_record(pk: String, sk: String) -> Result<(AccountId, SubscriptionId), TableError> {
    let key = Key { pk, sk };
    keys::of_record(&key).ok_or_else(|| TableError::unreadable(key, "its key names no subscription"))
}
