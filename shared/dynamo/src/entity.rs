//! Entities: the domain types that a table stores as items, and the names of their attributes.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Item, Key, TableError, from_item, key_of_item, to_item};

/// A type that a table stores as one item. `Schema` is the marker type of this table.
pub trait Entity<Schema>: Sized {
    /// The struct with the attributes of the item, without the primary key. The fields of this struct determine the
    /// names and types of the attributes in the table.
    type Attributes: Serialize + DeserializeOwned;

    /// Returns the primary key of the entity's item.
    fn key(&self) -> Key;

    /// Returns the attributes of the entity's item, without the primary key.
    fn attributes(&self) -> Self::Attributes;

    /// Creates the entity from its key and its attributes. Fails with [`TableError::Unreadable`] if the key and the
    /// attributes contradict each other.
    fn read(key: Key, attributes: Self::Attributes) -> Result<Self, TableError>;

    /// Returns the attribute (name and value) that is the entity's sort key in an overloaded index: an index whose sort
    /// key has another meaning for each kind of item. `None` if the entity is in no such index.
    fn index_key(&self) -> Option<(&'static str, String)> {
        None
    }

    /// Creates the whole item: the key, the attributes and the sort key of an overloaded index.
    fn to_item(&self) -> Item {
        let mut item = to_item(&self.attributes());
        item.extend(self.key().attributes());
        item.extend(self.index_key().map(|(name, value)| (name.to_owned(), crate::s(value))));
        item
    }

    /// Reads the entity from `item`.
    ///
    /// # Errors
    /// [`TableError::Unreadable`], with the name of the attribute, if an attribute is missing or has another type.
    fn from_item(item: &Item) -> Result<Self, TableError> {
        Self::read(key_of_item(item), from_item(item)?)
    }
}

/// Declares constants with attribute names. Each name is derived from a field of the struct `$attributes`: `DueDate`
/// from the field `due_date`. The struct must have `#[serde(rename_all = "PascalCase")]`. A constant of a field that
/// does not exist does not compile.
#[macro_export]
macro_rules! attributes {
    ($attributes:ident { $($constant:ident = $field:ident,)+ }) => {
        $(
            pub const $constant: &str = {
                const _: fn(&$attributes) = |attributes| {
                    let _ = &attributes.$field;
                };
                const NAME: [u8; $crate::attribute_name_len(stringify!($field))] =
                    $crate::attribute_name(stringify!($field));
                match ::core::str::from_utf8(&NAME) {
                    Ok(name) => name,
                    Err(_) => panic!("the name of a field must be ASCII"),
                }
            };
        )+
    };
}

/// Returns the length in bytes of the attribute name that [`attribute_name`] returns for `field`.
pub const fn attribute_name_len(field: &str) -> usize {
    let bytes = field.as_bytes();
    let mut at = 0;
    let mut len = 0;
    while at < bytes.len() {
        if bytes[at] != b'_' {
            len += 1;
        }
        at += 1;
    }
    len
}

/// Returns the attribute name of the struct field `field`, in ASCII: `DueDate` for `due_date`. `N` must be
/// [`attribute_name_len`]`(field)`.
pub const fn attribute_name<const N: usize>(field: &str) -> [u8; N] {
    let bytes = field.as_bytes();
    let mut name = [0; N];
    let mut at = 0;
    let mut len = 0;
    let mut is_first = true;
    while at < bytes.len() {
        if bytes[at] != b'_' {
            name[len] = if is_first { bytes[at].to_ascii_uppercase() } else { bytes[at] };
            len += 1;
        }
        is_first = bytes[at] == b'_';
        at += 1;
    }
    name
}
