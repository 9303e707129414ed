//! Request bodies: read into types that can only hold what is allowed.

use crate::input::{Input, Invalid};
use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use billing::Money;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::Problem;

/// A body is at most this large.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// A JSON body, and the hash of its bytes. An empty body is taken as an empty object.
///
/// The media type must be named, though there be no body: a form of another site cannot name it, and a script of another
/// site may not. So no web page can act in the name of whoever opens it.
#[derive(Debug)]
pub struct Body<T> {
    pub value: T,
    pub hash: String,
}

/// An empty object: there is nothing to say.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Minor units of the currency: 1299 EUR is 12.99 euros, 500 JPY is 500 yen.
// What is sent and is no whole number was meant in another unit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Input")]
#[schema(as = Amount, minimum = 1, maximum = 999_999_999_999_i64)]
pub struct MinorUnits(pub i64);

impl From<Money> for MinorUnits {
    fn from(amount: Money) -> Self {
        Self(amount.minor())
    }
}

impl TryFrom<Input> for MinorUnits {
    type Error = String;

    fn try_from(sent: Input) -> Result<Self, String> {
        let explained = |wrong: Invalid| format!("{wrong}; amounts are in minor units: 1299 EUR is 12.99 euros");
        sent.read().map(Self).map_err(explained)
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/json") {
            return Err(Problem::not_json());
        }
        let mut bytes =
            to_bytes(request.into_body(), MAX_BODY_BYTES).await.map_err(|_| Problem::too_large(MAX_BODY_BYTES))?;
        if bytes.is_empty() {
            bytes = "{}".into();
        }
        let value = Input::json(&bytes)?.read()?;
        Ok(Self { value, hash: format!("{:x}", Sha256::digest(&bytes)) })
    }
}
