//! List pages with an opaque cursor.
//!
//! A cursor contains the sort key of the last item on the page, but not the account. The account always comes from the
//! path of the request, so a cursor cannot give access to the list of another account.

use serde::Serialize;
use store::{Page, TableError};
use utoipa::ToSchema;

use crate::Problem;
use crate::cursor::ListCursor;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = List)]
pub struct ListView<T> {
    /// The items of the page.
    pub data: Vec<T>,
    /// The stored items of this page that cannot be read.
    pub unreadable: Vec<UnreadableView>,
    /// The value of the parameter `cursor` for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// A stored item that cannot be read. An operator must repair it. The other items of the page are listed nevertheless.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Unreadable)]
pub struct UnreadableView {
    /// The key of the item in the table: partition key and sort key.
    pub key: String,
    /// Why the item cannot be read.
    pub reason: String,
}

impl UnreadableView {
    /// Converts `errors` about unreadable items into the wire format, and logs each error.
    ///
    /// # Errors
    /// The first of `errors` that is not about an unreadable item.
    pub fn from_errors(errors: Vec<TableError>) -> Result<Vec<Self>, Problem> {
        let view = |error| match error {
            TableError::Unreadable { key, reason } => {
                tracing::error!(%key, %reason, error_type = "Unreadable", "a stored item cannot be read");
                Ok(Self { key: key.to_string(), reason })
            }
            error => Err(error.into()),
        };
        errors.into_iter().map(view).collect()
    }
}

impl<T> ListView<T> {
    /// Creates a list of a single page with all `items`, each converted by `view`.
    pub fn single_page<U>(items: Vec<U>, view: impl Fn(U) -> T) -> Self {
        Self { data: items.into_iter().map(view).collect(), unreadable: Vec::new(), next_cursor: None }
    }

    /// Creates a list page from a stored `page`, each item converted by `view`.
    ///
    /// # Errors
    /// If a request for the items of `page` failed. Unreadable items are no error: they are listed in `unreadable`.
    pub fn from_page<U>(page: Page<U>, view: impl Fn(U) -> T) -> Result<Self, Problem> {
        let next_cursor = page.next.map(|cursor| ListCursor::encode(cursor.as_str()));
        let data = page.items.into_iter().map(view).collect();
        Ok(Self { data, unreadable: UnreadableView::from_errors(page.unreadable)?, next_cursor })
    }
}
