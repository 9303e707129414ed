//! The change that one write makes to one item of the table.

use serde_json::Value;

/// The partition key (`PK`) and the sort key (`SK`) of an item.
pub type ItemKey = (String, String);

/// One item before and after a write. `before` or `after` is `None` if the item did not exist at that moment.
#[derive(Clone, Debug)]
pub struct ItemChange {
    pub key: ItemKey,
    pub before: Option<Value>,
    pub after: Option<Value>,
}
