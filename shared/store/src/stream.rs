//! What the table's stream of changes shows: items before and after, as the domain knows them.

use super::{Item, Key, TableError, keys};
use billing::Image;
use dynamo::{Entity, key_of};

/// Reads an image of the stream. `None`: an item that is of the machinery, such as a run record, and of no account.
///
/// # Errors
/// [`TableError::Unreadable`], with its key.
pub fn image(item: &Item) -> Result<Option<Image>, TableError> {
    let Key { pk, sk } = key_of(item);
    // Findings are for the people who run the system, and publish nothing.
    if !pk.starts_with(keys::ACCOUNTS) || sk.starts_with(keys::FINDINGS) {
        return Ok(None);
    }
    Ok(Some(if sk.starts_with(keys::ACCOUNTS) {
        Image::Account(Entity::from_item(item)?)
    } else if sk.starts_with(keys::SUBSCRIPTIONS) {
        Image::Subscription(Box::new(Entity::from_item(item)?))
    } else if sk.starts_with(keys::RECEIPTS) {
        Image::Receipt(Entity::from_item(item)?)
    } else if sk.starts_with(keys::REFUNDS) {
        Image::Refund(Entity::from_item(item)?)
    } else if sk.starts_with(keys::DISPUTES) {
        Image::Dispute(Entity::from_item(item)?)
    } else if sk.starts_with(keys::ATTEMPTS) {
        Image::Attempt(Entity::from_item(item)?)
    } else if sk.starts_with(keys::WAIVED) {
        Image::Waived(Entity::from_item(item)?)
    } else {
        return Err(TableError::unreadable(
            Key { pk, sk },
            "its key says that it is of an account, and not what it is",
        ));
    }))
}
