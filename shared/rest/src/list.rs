//! Lists: pages with an opaque cursor.
//!
//! A cursor holds what the last item is sorted by, never whose list it is of: it goes on in the list of whatever the path names,
//! and reaches no other.

use serde::Serialize;
use store::{Page, TableError};
use utoipa::ToSchema;

use crate::Problem;
use crate::cursor::ShownCursor;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = List)]
pub struct ListView<T> {
    /// The items of the page.
    pub data: Vec<T>,
    /// What stands on this page and cannot be read.
    pub unreadable: Vec<UnreadableView>,
    /// What `cursor` takes to go on; null at the list's end.
    pub next_cursor: Option<String>,
}

/// An item that cannot be read. It hides no other one; an operator has to look at it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Unreadable)]
pub struct UnreadableView {
    /// Its key in the table.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

impl UnreadableView {
    /// The items of `errors`, each logged once; what is wrong with the table itself is an error still.
    pub fn all(errors: Vec<TableError>) -> Result<Vec<Self>, Problem> {
        let named = |error| match error {
            TableError::Unreadable { key, reason } => {
                tracing::error!(%key, %reason, "an item cannot be read");
                Ok(Self { key: key.to_string(), reason })
            }
            error => Err(error.into()),
        };
        errors.into_iter().map(named).collect()
    }
}

impl<T> ListView<T> {
    /// A list that is all of `items`, each by `view`.
    pub fn whole<U>(items: Vec<U>, view: impl Fn(U) -> T) -> Self {
        Self { data: items.into_iter().map(view).collect(), unreadable: Vec::new(), next_cursor: None }
    }

    /// `page` as it is shown, each item by `view`.
    ///
    /// # Errors
    /// What is wrong with the table itself.
    pub fn of<U>(page: Page<U>, view: impl Fn(U) -> T) -> Result<Self, Problem> {
        let next_cursor = page.next.map(|cursor| ShownCursor::shown(cursor.as_str()));
        let data = page.items.into_iter().map(view).collect();
        Ok(Self { data, unreadable: UnreadableView::all(page.unreadable)?, next_cursor })
    }
}
