//! The primary key of an item.

use std::fmt;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::Item;

/// The beginnings of the partition keys that contain the id of a link: everyone who knows the id can open a web page of a
/// customer.
const PARTITIONS_WITH_LINKS: [&str; 3] = ["CARDLINK#", "SETUP#", "LIMIT#returns#"];

/// The number of characters of an id that contain its time. The other characters are random.
const TIME_CHARACTERS: usize = 10;

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

/// Writes the key for error messages and logs. Of the id of a link, writes only the characters with the time: so the item
/// can be found, and the message opens no web page.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pk, sk } = self;
        let prefix = PARTITIONS_WITH_LINKS.into_iter().find(|prefix| pk.starts_with(prefix));
        let Some((prefix, id)) = prefix.and_then(|prefix| Some((prefix, pk.strip_prefix(prefix)?))) else {
            return write!(f, "{pk} {sk}");
        };
        let time: String = id.chars().take(TIME_CHARACTERS).collect();
        write!(f, "{prefix}{time}...")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_shows_a_key_without_the_random_part_of_the_id_of_a_link() {
        let shown = |pk: &str, sk: &str| Key { pk: pk.to_owned(), sk: sk.to_owned() }.to_string();
        assert_eq!(shown("ACC#acme", "SUB#1"), "ACC#acme SUB#1");
        let id = "01JZXCVBNM0123456789ABCDEF";
        for prefix in PARTITIONS_WITH_LINKS {
            let pk = format!("{prefix}{id}");
            assert_eq!(shown(&pk, &pk), format!("{prefix}01JZXCVBNM..."));
        }
    }
}
