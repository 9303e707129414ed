//! [`RequestTime`]: the time of a request, read from the clock once.

use std::convert::Infallible;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use chrono::{DateTime, NaiveDate, Utc};

/// The time of a request, and its date: in the billing time zone for the payments, in UTC for the order desk. The clock
/// is read once per request, so that all parts of a request have the same date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestTime {
    /// The time at which the clock was read for this request, when its handling began.
    pub at: DateTime<Utc>,
    /// The date of the request.
    pub today: NaiveDate,
}

impl<S: Sync> FromRequestParts<S> for RequestTime
where
    RequestTime: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(*parts.extensions.get_or_insert_with(|| Self::from_ref(state)))
    }
}
