//! One file a resource.

pub mod accounts;
pub mod health;
pub mod receipts;
pub mod subscriptions;

use serde::Serialize;

/// A list.
#[derive(Debug, Serialize)]
pub struct List<T> {
    data: Vec<T>,
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(data: I) -> Self {
        Self { data: data.into_iter().collect() }
    }
}
