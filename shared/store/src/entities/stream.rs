//! Reads the items in DynamoDB's stream of the table's changes (each item before and after a change) as domain types.

use crate::items::is_erased_account;
use crate::keys;
use billing::ItemImage;
use dynamo::{Entity, key_of_item};
use dynamo::{Item, Key, TableError};

/// Reads the image of an item (its content before or after a change) in a stream record. Returns `None` for a finding,
/// for the mark of an erased account, and for an item that belongs neither to an account nor to the lists of actions,
/// audits and comparisons with the gateway, such as a run record.
///
/// # Errors
/// [`TableError::Unreadable`] if the item cannot be read.
pub fn read_stream_image(item: &Item) -> Result<Option<ItemImage>, TableError> {
    let Key { pk, sk } = key_of_item(item);
    if pk == keys::AUDITS {
        return Ok(Some(ItemImage::Audit(Entity::from_item(item)?)));
    }
    if pk == keys::RECONCILIATIONS {
        return Ok(Some(ItemImage::Reconciliation(Box::new(Entity::from_item(item)?))));
    }
    let has_account = pk.starts_with(keys::ACCOUNTS);
    if sk.starts_with(keys::ACTIONS) && (has_account || pk.starts_with(keys::ACTIONS_OF_MONTH)) {
        return Ok(Some(ItemImage::Action(Box::new(Entity::from_item(item)?))));
    }
    // No event is published for a finding, such as a successful payment without a receipt, because only operators may
    // see findings.
    if !has_account || sk.starts_with(keys::FINDINGS) {
        return Ok(None);
    }
    // The mark of an erased account replaces the account's item, so for the events the account no longer exists.
    if sk.starts_with(keys::ACCOUNTS) && is_erased_account(item) {
        return Ok(None);
    }
    Ok(Some(if sk.starts_with(keys::ACCOUNTS) {
        ItemImage::Account(Entity::from_item(item)?)
    } else if sk.starts_with(keys::SUBSCRIPTIONS) {
        ItemImage::Subscription(Box::new(Entity::from_item(item)?))
    } else if sk.starts_with(keys::RECEIPTS) {
        ItemImage::Receipt(Entity::from_item(item)?)
    } else if sk.starts_with(keys::REFUNDS) {
        ItemImage::Refund(Entity::from_item(item)?)
    } else if sk.starts_with(keys::DISPUTES) {
        ItemImage::Dispute(Entity::from_item(item)?)
    } else if sk.starts_with(keys::ATTEMPTS) {
        ItemImage::Attempt(Entity::from_item(item)?)
    } else if sk.starts_with(keys::WAIVED_PERIODS) {
        ItemImage::Waived(Entity::from_item(item)?)
    } else {
        return Err(TableError::unreadable(Key { pk, sk }, "its sort key has an unknown prefix"));
    }))
}
