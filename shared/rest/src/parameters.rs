//! The parameters of path and query, read into types that accept only valid values and that describe themselves in the
//! OpenAPI document.

use std::borrow::Cow;
use std::str::FromStr;

use crate::request_input::RequestInput;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use billing::{AccountId, CalendarError, parse_date};
use chrono::NaiveDate;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::{Cursor, Paging};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::cursor::ListCursor;
use crate::{Caller, Problem};

/// The parameters of the path. If one of the parameters is an account, the extractor has checked that the caller may
/// see the data of this account.
#[derive(Debug)]
pub struct Path<T>(pub T);

/// The parameters of the query. The query may contain each field of `T` at most once, and no other parameter.
#[derive(Debug)]
pub struct Query<T>(pub T);

/// The path parameter that names an account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct AccountPath {
    /// The id of the account.
    pub account: AccountId,
}

/// A query without parameters. Every parameter is refused as unknown, so that the caller notices a misspelled
/// parameter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoParameters {}

/// The query parameters of a list: the position and size of the page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// The `next_cursor` of the previous page; absent for the first page.
    #[serde(default)]
    #[param(inline)]
    pub cursor: ListCursor,
    /// The page size: the largest number of items of the page.
    #[serde(default)]
    #[param(inline)]
    pub limit: PageSize,
}

/// An identifier in a path. A malformed identifier causes a 404 response, like any other unknown identifier.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(from = "String", bound = "T: FromStr")]
pub struct PathId<T>(Option<T>);

/// A date, written as `2027-01-31`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct CivilDate(pub NaiveDate);

/// A whole number from 1 to `MAX` in a query; `DEFAULT` if the parameter is absent.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct BoundedNumber<const MAX: usize, const DEFAULT: usize>(pub usize);

/// A page size: the largest number of items of a list page.
pub type PageSize = BoundedNumber<100, 50>;

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        /// The account in the path. The caller's access to this account is checked before the other parameters, so that
        /// errors reveal nothing about the data of another account.
        #[derive(Deserialize)]
        struct AccountOfPath {
            account: Option<AccountId>,
        }
        let caller = Caller::from_request_parts(parts, state).await?;
        let names = RawPathParams::from_request_parts(parts, state).await;
        let names = names.map_err(|_| Problem::invalid_field("path", "must be text in UTF-8"))?;
        let names = RequestInput::from_text_pairs(names.iter().map(|(name, text)| (name.to_owned(), text.to_owned())));
        if let Some(account) = names.clone().read::<AccountOfPath>()?.account {
            caller.check_access(&account)?;
        }
        Ok(Self(names.read()?))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let pairs = pairs
            .map_err(|_| Problem::invalid_field("query", "must be parameters like ?limit=10&cursor=..., in UTF-8"))?;
        Ok(Self(RequestInput::from_text_pairs(pairs.0).read()?))
    }
}

impl<T: FromStr> From<String> for PathId<T> {
    fn from(text: String) -> Self {
        Self(text.parse().ok())
    }
}

impl<T> PathId<T> {
    /// Returns the identifier.
    ///
    /// # Errors
    /// The problem that `not_found` returns, if the identifier is malformed.
    pub fn ok_or_else(self, not_found: impl FnOnce() -> Problem) -> Result<T, Problem> {
        self.0.ok_or_else(not_found)
    }
}

impl PageQuery {
    /// Returns the range of the list that the page contains. `parse` reads the decoded position of the cursor; it
    /// returns `None` for the cursor of another list.
    ///
    /// # Errors
    /// 422 for the cursor of another list.
    pub fn paging(self, parse: impl Fn(String) -> Option<Cursor>) -> Result<Paging, Problem> {
        self.cursor.paging(self.limit.0, parse)
    }
}

impl TryFrom<String> for CivilDate {
    type Error = CalendarError;

    fn try_from(text: String) -> Result<Self, CalendarError> {
        parse_date(&text).map(Self)
    }
}

impl From<CivilDate> for NaiveDate {
    fn from(CivilDate(date): CivilDate) -> Self {
        date
    }
}

impl<const MAX: usize, const DEFAULT: usize> Default for BoundedNumber<MAX, DEFAULT> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<const MAX: usize, const DEFAULT: usize> TryFrom<String> for BoundedNumber<MAX, DEFAULT> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| (1..=MAX).contains(number));
        number.map(Self).ok_or_else(|| format!("must be a whole number from 1 to {MAX}"))
    }
}

impl<const MAX: usize, const DEFAULT: usize> PartialSchema for BoundedNumber<MAX, DEFAULT> {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(MAX));
        number.default(Some(DEFAULT.into())).into()
    }
}

impl<const MAX: usize, const DEFAULT: usize> ToSchema for BoundedNumber<MAX, DEFAULT> {
    fn name() -> Cow<'static, str> {
        "BoundedNumber".into()
    }
}
