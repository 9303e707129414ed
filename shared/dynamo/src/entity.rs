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
