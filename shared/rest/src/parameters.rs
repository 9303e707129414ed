//! What a request names outside its body: path and query, read into types that can only hold what is allowed and that
//! describe themselves in the OpenAPI document.

use std::borrow::Cow;
use std::str::FromStr;

use crate::input::Input;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use billing::{AccountId, CalendarError, parse_date};
use chrono::NaiveDate;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::{Cursor, Paging};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::cursor::ShownCursor;
use crate::{Caller, Problem};

/// What the path names. If it names an account, it is one that the caller may see.
#[derive(Debug)]
pub struct Path<T>(pub T);

/// The parameters of the query: those of `T`, each at most once, and no other.
#[derive(Debug)]
pub struct Query<T>(pub T);

/// An account.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct AccountPath {
    /// The account.
    pub account: AccountId,
}

/// No parameters: one that is not known must not be passed over.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoParameters {}

/// Which page of a list is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// The `next_cursor` of an earlier page; absent for the first.
    #[serde(default)]
    #[param(inline)]
    cursor: ShownCursor,
    /// At most this many items.
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
}

/// An identifier in a path. A text that no identifier can be is one of nothing that is there: 404, like any other unknown one.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(from = "String", bound = "T: FromStr")]
pub struct PathId<T>(Option<T>);

/// A date of the calendar, written as `2027-01-31`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct CivilDate(pub NaiveDate);

/// A number from 1 to `MOST`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct UpTo<const MOST: usize, const DEFAULT: usize>(pub usize);

/// How many items a page holds.
pub type Limit = UpTo<100, 50>;

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        /// The account is looked at first: nothing is said of what stands in another one.
        #[derive(Deserialize)]
        struct Scope {
            account: Option<AccountId>,
        }
        let caller = Caller::from_request_parts(parts, state).await?;
        let names = RawPathParams::from_request_parts(parts, state).await;
        let names = names.map_err(|_| Problem::field("path", "must be text in UTF-8"))?;
        let names = Input::texts(names.iter().map(|(name, text)| (name.to_owned(), text.to_owned())));
        if let Some(account) = names.clone().read::<Scope>()?.account {
            caller.sees(&account)?;
        }
        Ok(Self(names.read()?))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let pairs =
            pairs.map_err(|_| Problem::field("query", "must be parameters like ?limit=10&cursor=..., in UTF-8"))?;
        Ok(Self(Input::texts(pairs.0).read()?))
    }
}

impl<T: FromStr> From<String> for PathId<T> {
    fn from(text: String) -> Self {
        Self(text.parse().ok())
    }
}

impl<T> PathId<T> {
    /// The identifier.
    ///
    /// # Errors
    /// `missing`, if no identifier can be written so.
    pub fn or(self, missing: impl FnOnce() -> Problem) -> Result<T, Problem> {
        self.0.ok_or_else(missing)
    }
}

impl PageQuery {
    /// Which page of a list that `read` knows the cursors of.
    ///
    /// # Errors
    /// 422 for the cursor of another list.
    pub fn paging(self, read: impl Fn(String) -> Option<Cursor>) -> Result<Paging, Problem> {
        self.cursor.paging(self.limit.0, read)
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

impl<const MOST: usize, const DEFAULT: usize> Default for UpTo<MOST, DEFAULT> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<const MOST: usize, const DEFAULT: usize> TryFrom<String> for UpTo<MOST, DEFAULT> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| (1..=MOST).contains(number));
        number.map(Self).ok_or_else(|| format!("must be a whole number from 1 to {MOST}"))
    }
}

impl<const MOST: usize, const DEFAULT: usize> PartialSchema for UpTo<MOST, DEFAULT> {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(MOST));
        number.default(Some(DEFAULT.into())).into()
    }
}

impl<const MOST: usize, const DEFAULT: usize> ToSchema for UpTo<MOST, DEFAULT> {
    fn name() -> Cow<'static, str> {
        "UpTo".into()
    }
}
