//! The primary key of an item.

use std::fmt;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::Item;

/// The primary key of an item.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    pub pk: String,
    pub sk: String,
}

impl Key {
    /// Converts the key to the attributes `PK` and `SK`.
    pub fn attributes(self) -> Item {
        Item::from([("PK".to_owned(), AttributeValue::S(self.pk)), ("SK".to_owned(), AttributeValue::S(self.sk))])
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pk, self.sk)
    }
}
