//! Idempotency keys: the same caller, route, key and body get the same answer for 48 hours.
//!
//! An answer is written in the one transaction of what it answers, so that no crash parts them. What was refused has
//! changed nothing and is not kept: once mended, the request may be sent under the same key.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use store::{IDEMPOTENCY_KEPT, IdempotentRequest, KeptAnswer, Replayed};
use ulid::Ulid;
use utoipa::IntoParams;

use crate::etag::WithETag;
use crate::{Caller, Problem};

/// An idempotency key is at most this many characters.
const MAX_CHARS: usize = 255;
/// Tells a replayed answer from a first one.
const IS_REPLAY: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The request's idempotency key, if it has one: hashed with caller, method and path.
#[derive(Debug, IntoParams)]
#[into_params(names("Idempotency-Key"), parameter_in = Header)]
pub struct IdempotencyKey(
    /// A text of your own that names this request, such as a new UUID: the same key with the same body gets the same answer
    /// for 48 hours.
    #[param(value_type = String, min_length = 1, max_length = 255, pattern = "^[\\x20-\\x7e]+$", required = false)]
    Option<String>,
);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get("idempotency-key").cloned() else { return Ok(Self(None)) };
        let is_visible = |key: &&str| key.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
        let key = value.to_str().ok().filter(|key| (1..=MAX_CHARS).contains(&key.len())).filter(is_visible);
        let expected = format!("must be 1 to {MAX_CHARS} visible ASCII characters");
        let key = key.ok_or_else(|| Problem::field("Idempotency-Key", expected))?;
        let caller = Caller::from_request_parts(parts, state).await?;
        let named = format!("{}\n{}\n{}\n{key}", caller.name(), parts.method, parts.uri.path());
        Ok(Self(Some(format!("{:x}", Sha256::digest(named)))))
    }
}

/// The idempotency key of a request that is not taken without one.
#[derive(Debug, IntoParams)]
#[into_params(names("Idempotency-Key"), parameter_in = Header)]
pub struct RequiredIdempotencyKey(
    /// A text of your own that names this request, such as a new UUID. The same key with the same body is the same request, however often
    /// it is sent.
    #[param(value_type = String, min_length = 1, max_length = 255, pattern = "^[\\x20-\\x7e]+$", required = true)]
    String,
);

impl<S: Send + Sync> FromRequestParts<S> for RequiredIdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let IdempotencyKey(key) = IdempotencyKey::from_request_parts(parts, state).await?;
        let missing = "is required: a text of your own that names this request, such as a new UUID; send the same \
            text whenever you repeat the request";
        key.map(Self).ok_or_else(|| Problem::field("Idempotency-Key", missing))
    }
}

impl RequiredIdempotencyKey {
    /// Returns an id that the same request has whenever it is sent again.
    pub fn id(&self) -> Ulid {
        let digest = Sha256::digest(&self.0);
        let bytes: [u8; 16] = digest.first_chunk().copied().unwrap_or_default();
        Ulid::from_bytes(bytes)
    }
}

impl IdempotencyKey {
    /// The idempotent request that it and the hash of its body make at `now`, without its answer.
    pub fn request(self, body_hash: &str, now: DateTime<Utc>) -> Option<IdempotentRequest> {
        self.0.map(|key_hash| IdempotentRequest {
            made_at: now,
            key_hash,
            request_hash: body_hash.to_owned(),
            answer: KeptAnswer::default(),
            expires_at: now + IDEMPOTENCY_KEPT,
        })
    }
}

/// The answer that was kept, with the status its route always has.
///
/// # Errors
/// 422 if the key was used for another request.
pub fn replay(replayed: Replayed, status: StatusCode) -> Result<Response, Problem> {
    match replayed {
        Replayed::KeyReused => Err(Problem::key_reused()),
        Replayed::Answered(kept) => Ok(replayed_answer(answer(status, kept))),
    }
}

/// `response`, which says that its request was answered before.
pub fn replayed_answer(mut response: Response) -> Response {
    response.headers_mut().insert(IS_REPLAY, HeaderValue::from_static("true"));
    response
}

/// An answer about what has versions, with the tag of the version it states.
pub fn answer(status: StatusCode, answer: KeptAnswer) -> Response {
    let json = ([(header::CONTENT_TYPE, "application/json")], answer.json);
    (status, WithETag(answer.version, json)).into_response()
}
