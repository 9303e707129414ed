//! The stored items: structs with the attribute names and types of the table, separate from the domain types. An
//! attribute keeps its first name, even if the code now has a better name; `keys/` explains why.

mod accepted_difference;
mod account;
mod action;
mod attempt_record;
mod audit;
mod day_reconciliation;
mod dispute;
mod due_item;
mod erasure;
mod finding;
mod gateway_text;
mod outbound_webhook;
mod payment_method_setup;
mod receipt;
mod refund;
mod removable_item;
pub(super) mod subscription;
mod waived_period;

pub(super) use account::{CREATIONS, creations_of_account};
pub(super) use due_item::DueItem;
pub use due_item::{DueEntry, DueIndexPosition, Lane};
pub(super) use erasure::{is_erased_account, read_account};
pub(super) use finding::open_finding_item;
use gateway_text::GatewayText;
pub(super) use outbound_webhook::{DELIVERY_RETENTION, read_event_subscriber, recover_delivery};
pub use outbound_webhook::{EventSubscriber, WaitingDelivery};
pub(super) use payment_method_setup::SETUP_RETENTION;
pub use removable_item::owner_of_removable_item;

use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{
    Account, AccountId, AuditRecord, DayReconciliation, Delivery, Dispute, Erasure, PaymentMethodSetup, Refund,
    Subscription, SubscriptionId, WebhookEndpoint,
};
use dynamo::{Item, Key, TableError};

dynamo::versioned!(PaymentsSchema: Account, AuditRecord, DayReconciliation, Delivery, Dispute, Erasure, Refund, PaymentMethodSetup, Subscription, WebhookEndpoint);

/// Returns the account and the subscription of the receipt or other payment record with this key.
fn subscription_of_record(key: Key) -> Result<(AccountId, SubscriptionId), TableError> {
    keys::parse_subscription_of_record(&key)
        .ok_or_else(|| TableError::unreadable(key, "its key does not contain an account and a subscription"))
}

/// Returns the attributes of `item` that `is_kept` selects, and its key.
pub(super) fn keep_attributes(item: &Item, is_kept: impl Fn(&str) -> bool) -> Item {
    let kept = item.iter().filter(|(name, _)| is_kept(name) || ["PK", "SK"].contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}
