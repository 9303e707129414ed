//! Entities: what a table stores under keys of their own, each declared once.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Item, Key, TableError, from_item, key_of, to_item};

/// What a table of the schema `S` stores as one item.
pub trait Entity<S>: Sized {
    /// The struct of its attributes, apart from its key: their names and types in the table.
    type Attributes: Serialize + DeserializeOwned;

    /// Its primary key.
    fn key(&self) -> Key;

    /// Its attributes.
    fn attributes(&self) -> Self::Attributes;

    /// The entity with these attributes under `key`.
    ///
    /// # Errors
    /// [`TableError::Unreadable`].
    fn read(key: Key, attributes: Self::Attributes) -> Result<Self, TableError>;

    /// The sort key by which an overloaded index lists it, as an attribute of its own; none, if it is in no such index.
    fn index_key(&self) -> Option<(&'static str, String)> {
        None
    }

    /// The whole item.
    fn to_item(&self) -> Item {
        let mut item = to_item(&self.attributes());
        item.extend(self.key().attributes());
        item.extend(self.index_key().map(|(name, value)| (name.to_owned(), crate::s(value))));
        item
    }

    /// The entity that `item` is.
    ///
    /// # Errors
    /// [`TableError::Unreadable`], which names the attribute that is missing or of another type.
    fn from_item(item: &Item) -> Result<Self, TableError> {
        Self::read(key_of(item), from_item(item)?)
    }
}

/// Declares constants of attribute names, each by the field of the struct `$attributes` that has the attribute. The struct
/// renames its fields in Pascal case. A field that does not exist does not compile.
#[macro_export]
macro_rules! attributes {
    ($attributes:ident { $($constant:ident = $field:ident,)+ }) => {
        $(
            pub const $constant: &str = {
                const _: fn(&$attributes) = |attributes| {
                    let _ = &attributes.$field;
                };
                const NAME: [u8; $crate::name_len(stringify!($field))] = $crate::name_of(stringify!($field));
                match ::core::str::from_utf8(&NAME) {
                    Ok(name) => name,
                    Err(_) => panic!("a field's name is ASCII"),
                }
            };
        )+
    };
}

/// The length of the name of the attribute in `field`.
pub const fn name_len(field: &str) -> usize {
    let (bytes, mut at, mut len) = (field.as_bytes(), 0, 0);
    while at < bytes.len() {
        if bytes[at] != b'_' {
            len += 1;
        }
        at += 1;
    }
    len
}

/// The name of the attribute in `field`: `due_date` is `DueDate`.
pub const fn name_of<const N: usize>(field: &str) -> [u8; N] {
    let (bytes, mut name, mut at, mut len, mut is_first) = (field.as_bytes(), [0; N], 0, 0, true);
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
