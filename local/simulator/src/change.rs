//! One item before and after a write.

use serde_json::Value;

/// An item's `PK` and `SK`.
pub type ItemKey = (String, String);

/// What a write has made of one item.
#[derive(Clone, Debug)]
pub struct Change {
    pub key: ItemKey,
    pub before: Option<Value>,
    pub after: Option<Value>,
}
