//! Request bodies: read into types that can only hold what is allowed.

use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::Problem;

/// A body is at most this large.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// A JSON body, and the hash of its bytes. An absent body is an empty object.
#[derive(Debug)]
pub struct Body<T> {
    pub value: T,
    pub hash: String,
}

/// A body that says nothing.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        let is_json = media_type.eq_ignore_ascii_case("application/json");
        let mut bytes =
            to_bytes(request.into_body(), MAX_BODY_BYTES).await.map_err(|_| Problem::too_large(MAX_BODY_BYTES))?;
        if bytes.is_empty() {
            bytes = "{}".into();
        } else if !is_json {
            return Err(Problem::not_json());
        }
        let loose: Value = serde_json::from_slice(&bytes).map_err(|error| Problem::malformed(error.to_string()))?;
        refuse_lists(&loose, "")?;
        let mut json = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut json).map_err(named)?;
        Ok(Self { value, hash: hex(&Sha256::digest(&bytes)) })
    }
}

/// No body has lists. They are looked for because a struct would be read from one, field by field in order.
fn refuse_lists(value: &Value, path: &str) -> Result<(), Problem> {
    match value {
        Value::Array(_) if path.is_empty() => Err(Problem::malformed("must be an object, not a list")),
        Value::Array(_) => Err(Problem::field(path, "must not be a list")),
        Value::Object(fields) => fields.iter().try_for_each(|(name, field)| {
            refuse_lists(field, &if path.is_empty() { name.clone() } else { format!("{path}.{name}") })
        }),
        _ => Ok(()),
    }
}

/// The problem of a body that is not what it must be, with the field's name where there is one.
fn named(error: serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let path = error.path().to_string();
    let inner = error.into_inner();
    let text = inner.to_string();
    // The position says nothing to whoever sent one line of JSON.
    let said = text.split(" at line ").next().unwrap_or_default().to_owned();
    if inner.is_syntax() || inner.is_eof() {
        return Problem::malformed(text);
    }
    let parent = if path == "." { String::new() } else { format!("{path}.") };
    let quoted = || said.split('`').nth(1).unwrap_or_default().to_owned();
    if said.starts_with("missing field") {
        return Problem::field(format!("{parent}{}", quoted()), "is required");
    }
    if said.starts_with("unknown field") {
        let field = quoted();
        let parent = path.strip_suffix(&field).unwrap_or(&parent).to_owned();
        let allowed = said.split_once(", ").map_or("", |(_, allowed)| allowed);
        return Problem::field(format!("{parent}{field}"), format!("is not known; {allowed}"));
    }
    match path.as_str() {
        "." => Problem::malformed(said),
        field => Problem::field(field, said),
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
