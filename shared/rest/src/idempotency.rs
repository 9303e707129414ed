//! Idempotency keys: the same caller, route, key and body get the same response for 48 hours.
//!
//! The response is stored in the same transaction as the change, so a crash cannot separate them. The response to a
//! refused request is not stored, because the request has changed nothing. After the cause of the refusal is fixed, the
//! caller can repeat the request with the same key.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use store::{IDEMPOTENCY_RETENTION, IdempotencyKeyReuse, IdempotentRequest, StoredResponse};
use ulid::Ulid;
use utoipa::IntoParams;

use crate::etag::WithETag;
use crate::{Caller, Problem};

/// The largest length of an idempotency key, in characters.
const MAX_KEY_CHARS: usize = 255;
/// The header of a response that repeats the stored response to an earlier request.
const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The hash of a request's idempotency key together with the request's caller, method and path; `None` if the request
/// has no key.
#[derive(Debug, IntoParams)]
#[into_params(names("Idempotency-Key"), parameter_in = Header)]
pub struct IdempotencyKey(
    /// A unique text for this request that you choose, such as a new UUID. The same key with the same body gets the
    /// same response for 48 hours.
    #[param(value_type = String, min_length = 1, max_length = 255, pattern = "^[\\x20-\\x7e]+$", required = false)]
    Option<String>,
);

/// Returns the request's idempotency key, preceded by the request's caller, method and path. So the same key of another
/// caller, or for another route, is a different key. Returns `None` if the request has no key.
async fn read_scoped_idempotency_key<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Option<String>, Problem> {
    let Some(value) = parts.headers.get("idempotency-key").cloned() else { return Ok(None) };
    let is_visible = |key: &&str| key.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let key = value.to_str().ok().filter(|key| (1..=MAX_KEY_CHARS).contains(&key.len())).filter(is_visible);
    let expected = format!("must be 1 to {MAX_KEY_CHARS} printable ASCII characters");
    let key = key.ok_or_else(|| Problem::invalid_field("Idempotency-Key", expected))?;
    let caller = Caller::from_request_parts(parts, state).await?;
    Ok(Some(format!("{}\n{}\n{}\n{key}", caller.idempotency_scope(), parts.method, parts.uri.path())))
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let key = read_scoped_idempotency_key(parts, state).await?;
        Ok(Self(key.map(|key| format!("{:x}", Sha256::digest(key)))))
    }
}

/// The idempotency key of a request, preceded by the request's caller, method and path. A request without a key is
/// refused.
#[derive(Debug, IntoParams)]
#[into_params(names("Idempotency-Key"), parameter_in = Header)]
pub struct RequiredIdempotencyKey(
    /// A unique text for this request that you choose, such as a new UUID. Requests with the same key and the same body
    /// are carried out once.
    #[param(value_type = String, min_length = 1, max_length = 255, pattern = "^[\\x20-\\x7e]+$", required = true)]
    String,
);

impl<S: Send + Sync> FromRequestParts<S> for RequiredIdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let key = read_scoped_idempotency_key(parts, state).await?;
        let missing = "is required: a unique text for this request that you choose, such as a new UUID; send the same \
            text whenever you repeat the request";
        key.map(Self).ok_or_else(|| Problem::invalid_field("Idempotency-Key", missing))
    }
}

impl RequiredIdempotencyKey {
    /// Returns the key with a changed path: `name` replaces the path segment after the last segment `segment`. Use this
    /// function if a path can name an object in two ways, such as a receipt by its id or its number. Requests with the
    /// same idempotency key are then the same request, whichever name their paths contain.
    #[must_use]
    pub fn with_path_segment_after(self, segment: &str, name: &str) -> Self {
        // Split from the end, because the name of the caller can contain a line break. The idempotency key and the path
        // cannot.
        let mut lines: Vec<&str> = self.0.rsplitn(3, '\n').collect();
        let mut segments: Vec<&str> = lines[1].split('/').collect();
        // Find the last segment with this text: the id of an account, which comes earlier in the path, can have the
        // same text.
        if let Some(named) = segments.iter().rposition(|part| *part == segment).and_then(|at| segments.get_mut(at + 1))
        {
            *named = name;
        }
        let path = segments.join("/");
        lines[1] = &path;
        lines.reverse();
        Self(lines.join("\n"))
    }

    /// Returns the idempotency record to store with the change. The response in this record is empty: the route must
    /// set it. `now` is the time of the request.
    pub fn idempotent_request(self, body_hash: &str, now: DateTime<Utc>) -> Option<IdempotentRequest> {
        IdempotencyKey(Some(format!("{:x}", Sha256::digest(self.0)))).idempotent_request(body_hash, now)
    }

    /// Returns an id that is the same for each repetition of the request.
    pub fn derive_request_id(&self) -> Ulid {
        let digest = Sha256::digest(format!("{:x}", Sha256::digest(&self.0)));
        let bytes: [u8; 16] = digest.first_chunk().copied().unwrap_or_default();
        Ulid::from_bytes(bytes)
    }
}

impl IdempotencyKey {
    /// Returns the idempotency record to store with the change; `None` if the request has no key. The response in this
    /// record is empty: the route must set it. `now` is the time of the request.
    pub fn idempotent_request(self, body_hash: &str, now: DateTime<Utc>) -> Option<IdempotentRequest> {
        self.0.map(|key_hash| IdempotentRequest {
            made_at: now,
            key_hash,
            request_hash: body_hash.to_owned(),
            response: StoredResponse::default(),
            expires_at: now + IDEMPOTENCY_RETENTION,
        })
    }
}

/// Returns the stored response to an earlier request. `status` is the status code that the route returns for every
/// success.
///
/// # Errors
/// 422 if the key was used for a request with another body.
pub fn replay_response(replayed: IdempotencyKeyReuse, status: StatusCode) -> Result<Response, Problem> {
    match replayed {
        IdempotencyKeyReuse::KeyReused => Err(Problem::idempotency_key_reused()),
        IdempotencyKeyReuse::SameRequest(stored) => Ok(mark_response_as_replayed(json_response(status, stored))),
    }
}

/// Adds the header `Idempotent-Replayed: true` to `response`, which repeats the response to an earlier request.
pub fn mark_response_as_replayed(mut response: Response) -> Response {
    response.headers_mut().insert(REPLAYED_HEADER, HeaderValue::from_static("true"));
    response
}

/// Creates the response with the JSON of `stored` as its body, and the version of `stored` as its `ETag`.
pub fn json_response(status: StatusCode, stored: StoredResponse) -> Response {
    let json = ([(header::CONTENT_TYPE, "application/json")], stored.json);
    (status, WithETag(stored.version, json)).into_response()
}
