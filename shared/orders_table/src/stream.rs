//! Reads the orders in DynamoDB's stream of the table's changes (each item before and after a change).

use crate::keys;
use dynamo::{Entity as _, Item, Key, TableError, key_of_item};
use orders::Order;

/// Returns whether `key` is the key of an order's own item, not of one of its relations.
pub fn is_order_key(key: &Key) -> bool {
    key.pk.starts_with(keys::ORDER_PREFIX) && key.sk.starts_with(keys::CUSTOMER_PREFIX)
}

/// Reads the order in the image of an item (its content before or after a change) in a stream record. Returns `None` for
/// every item except the own items of orders: only their changes are published as events.
///
/// # Errors
/// [`TableError::Unreadable`] if the item of an order cannot be read.
pub fn read_order_from_stream_image(item: &Item) -> Result<Option<Order>, TableError> {
    is_order_key(&key_of_item(item)).then(|| Order::from_item(item)).transpose()
}
