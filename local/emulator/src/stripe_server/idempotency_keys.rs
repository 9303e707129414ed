//! The idempotency keys of the stand-in: the first response to a request is repeated while its key lives.

use std::collections::{BTreeMap, HashMap};

use axum::http::StatusCode;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// "Idempotent requests" in the API reference: keys may be removed once they are at least 24 hours old.
const KEY_LIFE: TimeDelta = TimeDelta::hours(24);

/// The responses that are kept, by idempotency key.
#[derive(Default)]
pub struct IdempotencyKeys(HashMap<String, Kept>);

/// The key was used for another request.
pub struct KeyReused;

struct Kept {
    method_and_path: String,
    parameters: BTreeMap<String, String>,
    response: (StatusCode, Value),
    at: DateTime<Utc>,
}

impl IdempotencyKeys {
    /// The response that is kept under `key` at `now`, if the request is the same.
    pub fn response(
        &mut self,
        key: &str,
        method_and_path: &str,
        parameters: &BTreeMap<String, String>,
        now: DateTime<Utc>,
    ) -> Option<Result<(StatusCode, Value), KeyReused>> {
        self.0.retain(|_, kept| now.signed_duration_since(kept.at) < KEY_LIFE);
        let kept = self.0.get(key)?;
        let is_same = kept.method_and_path == method_and_path && kept.parameters == *parameters;
        Some(if is_same { Ok(kept.response.clone()) } else { Err(KeyReused) })
    }

    /// Keeps `response` to a request under `key`.
    pub fn keep(
        &mut self,
        key: &str,
        (method_and_path, parameters): (String, BTreeMap<String, String>),
        response: (StatusCode, Value),
        now: DateTime<Utc>,
    ) {
        self.0.insert(key.to_owned(), Kept { method_and_path, parameters, response, at: now });
    }
}
