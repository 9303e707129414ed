//! Lists: pages with an opaque cursor.
//!
//! A cursor holds a sort key, never an account: it goes on in the list of whatever account the path names, and reaches
//! no other.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use shared::table::{Cursor, Page, Paging, TableError};
use utoipa::ToSchema;

use crate::parameters::Parameters;
use crate::{Api, Problem};

/// A page holds this many items unless asked otherwise, and at most so many.
pub const DEFAULT_LIMIT: usize = 50;
pub const MAX_LIMIT: usize = 100;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct List<T> {
    pub data: Vec<T>,
    /// What stands on this page and cannot be read.
    pub unreadable: Vec<Unreadable>,
    /// What `cursor` takes to go on; null at the list's end.
    pub next_cursor: Option<String>,
}

/// An item that cannot be read. It hides no other one; an operator has to look at it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Unreadable {
    /// Its key in the table.
    key: String,
    /// What is wrong with it.
    reason: String,
}

impl Unreadable {
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

impl<T> List<T> {
    /// `page` as it is shown.
    pub fn of<U: Into<T>>(page: Page<U>) -> Result<Self, Problem> {
        let next_cursor = page.next.map(|cursor| encoded(cursor.as_str()));
        let data = page.items.into_iter().map(U::into).collect();
        Ok(Self { data, unreadable: Unreadable::all(page.unreadable)?, next_cursor })
    }
}

/// A cursor's text as it is shown.
pub fn encoded(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

impl Parameters {
    /// The text that was shown as the cursor.
    ///
    /// # Errors
    /// 400 for what was never shown; 422 for the cursor of another list.
    pub fn cursor<T>(&self, read: impl Fn(String) -> Option<T>) -> Result<Option<T>, Problem> {
        const EXPECTED: &str = "must be the next_cursor of an earlier page of this list";
        let Some(shown) = self.parsed::<String>("cursor", EXPECTED)? else { return Ok(None) };
        if shown.is_empty() || !shown.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
            return Err(Problem::field("cursor", EXPECTED));
        }
        let decoded = URL_SAFE_NO_PAD.decode(shown).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        decoded.and_then(read).ok_or_else(|| Problem::refused("cursor", EXPECTED)).map(Some)
    }

    /// How many items a page is to hold.
    ///
    /// # Errors
    /// 400.
    pub fn limit(&self) -> Result<usize, Problem> {
        self.number("limit", DEFAULT_LIMIT, MAX_LIMIT)
    }

    /// Which page of a list that `read` knows the cursors of; it takes no other parameters.
    ///
    /// # Errors
    /// 400.
    pub fn paging(self, read: impl Fn(String) -> Option<Cursor>) -> Result<Paging, Problem> {
        let parameters = self.only(&["cursor", "limit"])?;
        Ok(Paging { after: parameters.cursor(read)?, limit: Some(parameters.limit()?) })
    }
}

impl Api {
    /// `page` of a list of `account`: an empty one may be that of no account.
    ///
    /// # Errors
    /// 404.
    pub async fn of_account<T>(&self, account: &shared::billing::AccountId, page: Page<T>) -> Result<Page<T>, Problem> {
        if page.is_empty() && self.table.get_account(account).await?.is_none() {
            return Err(Problem::no_account());
        }
        Ok(page)
    }
}
