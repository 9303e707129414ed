//! When a request was made.

use std::convert::Infallible;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use chrono::{DateTime, NaiveDate, Utc};

/// The instant of a request and its day. The clock is read once for each request: no request falls on two days.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    pub at: DateTime<Utc>,
    pub today: NaiveDate,
}

impl<S: Sync> FromRequestParts<S> for Now
where
    Now: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(*parts.extensions.get_or_insert_with(|| Self::from_ref(state)))
    }
}
