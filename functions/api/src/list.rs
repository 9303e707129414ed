//! Lists: pages with an opaque cursor.
//!
//! A cursor holds a sort key, never an account: it goes on in the list of whatever account the path names, and reaches
//! no other.

use serde::Serialize;
use shared::billing::AccountId;
use shared::table::{Page, TableError};
use utoipa::ToSchema;

use crate::parameters::ShownCursor;
use crate::{Api, Problem};

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
    key: String,
    /// What is wrong with it.
    reason: String,
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

impl Api {
    /// `page` of a list of `account` as it is shown. An empty one may be that of no account.
    ///
    /// # Errors
    /// 404.
    pub async fn list_of<T, U: Into<T>>(&self, account: &AccountId, page: Page<U>) -> Result<ListView<T>, Problem> {
        if page.is_empty() && self.table.get_account(account).await?.is_none() {
            return Err(Problem::no_account());
        }
        ListView::of(page, U::into)
    }
}

impl<T> ListView<T> {
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
