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

    /// Returns the key as one text: a stored position, after which a later process continues a scan. No partition
    /// key of the table may contain `separator`.
    pub fn to_position(&self, separator: char) -> String {
        format!("{}{separator}{}", self.pk, self.sk)
    }

    /// Reads the key from a text that [`Key::to_position`] returned; `None` if the text does not contain `separator`.
    pub fn from_position(text: &str, separator: char) -> Option<Self> {
        let (pk, sk) = text.split_once(separator)?;
        Some(Self { pk: pk.to_owned(), sk: sk.to_owned() })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pk, self.sk)
    }
}
