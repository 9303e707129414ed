//! JSON request bodies, read into types that accept only valid values.

use crate::request_input::{InvalidInput, RequestInput};
use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use billing::Money;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::Problem;

/// The largest request body, in bytes.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// A JSON request body and its hash. An empty body counts as an empty object.
///
/// The header `Content-Type: application/json` is required even without a body. This requirement protects against
/// cross-site request forgery: an HTML form cannot send this header, and the browser does not let a script of another
/// site send it.
#[derive(Debug)]
pub struct Body<T> {
    /// The parsed body.
    pub value: T,
    /// The SHA-256 hash of the body's bytes, in hexadecimal.
    pub hash: String,
}

/// An empty object. This operation needs no fields.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Nothing)]
pub struct EmptyObject {}

/// An amount in minor units of the currency: 1299 EUR is 12.99 euros, 500 JPY is 500 yen.
// A caller who sends a number such as 12.99 probably means major units, so the error explains minor units.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "RequestInput")]
#[schema(as = Amount, minimum = 1, maximum = 999_999_999_999_i64)]
pub struct MinorUnits(pub i64);

impl From<Money> for MinorUnits {
    fn from(amount: Money) -> Self {
        Self(amount.minor())
    }
}

impl TryFrom<RequestInput> for MinorUnits {
    type Error = String;

    fn try_from(input: RequestInput) -> Result<Self, String> {
        let explained =
            |invalid: InvalidInput| format!("{invalid}; amounts are in minor units: 1299 EUR is 12.99 euros");
        input.read().map(Self).map_err(explained)
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/json") {
            return Err(Problem::body_not_json());
        }
        if !has_plain_body(request.headers()) {
            return Err(Problem::unsupported_content_encoding());
        }
        let mut bytes =
            to_bytes(request.into_body(), MAX_BODY_BYTES).await.map_err(|_| Problem::body_too_large(MAX_BODY_BYTES))?;
        if bytes.is_empty() {
            bytes = "{}".into();
        }
        let value = RequestInput::parse_json(&bytes)?.read()?;
        Ok(Self { value, hash: format!("{:x}", Sha256::digest(&bytes)) })
    }
}

/// Returns whether a request with `headers` has no content encoding, such as a compression, or only the encoding `identity`.
fn has_plain_body(headers: &HeaderMap) -> bool {
    let is_identity = |coding: &str| coding.trim().eq_ignore_ascii_case("identity");
    let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
    values.all(|value| value.to_str().is_ok_and(|value| value.split(',').all(is_identity)))
}
