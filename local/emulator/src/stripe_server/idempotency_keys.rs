//! The idempotency keys of the stand-in: a repeated request gets the response to the first request with its key, until
//! the key expires.

use std::collections::{BTreeMap, HashMap};

use axum::http::StatusCode;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// The lifetime of a key: Stripe may remove a key when it is at least 24 hours old ("Idempotent requests" in the API
/// reference).
const KEY_LIFETIME: TimeDelta = TimeDelta::hours(24);

/// The stored responses by idempotency key.
#[derive(Default)]
pub struct IdempotencyKeys(HashMap<String, StoredResponse>);

/// The error for an idempotency key that was used for another request.
pub struct KeyReused;

/// The response to a request, with the method, the path and the parameters that a repeated request must have.
struct StoredResponse {
    method_and_path: String,
    parameters: BTreeMap<String, String>,
    response: (StatusCode, Value),
    stored_at: DateTime<Utc>,
}

impl IdempotencyKeys {
    /// Returns the response that is stored under `key` and not expired at `now`; `None` if no such response is stored.
    ///
    /// # Errors
    /// [`KeyReused`] if the key belongs to another request.
    pub fn stored_response(
        &mut self,
        key: &str,
        method_and_path: &str,
        parameters: &BTreeMap<String, String>,
        now: DateTime<Utc>,
    ) -> Option<Result<(StatusCode, Value), KeyReused>> {
        self.0.retain(|_, stored| now.signed_duration_since(stored.stored_at) < KEY_LIFETIME);
        let stored = self.0.get(key)?;
        let is_same = stored.method_and_path == method_and_path && stored.parameters == *parameters;
        Some(if is_same { Ok(stored.response.clone()) } else { Err(KeyReused) })
    }

    /// Stores the response to a request under its idempotency key `key`.
    pub fn store(
        &mut self,
        key: &str,
        method_and_path: String,
        parameters: BTreeMap<String, String>,
        response: (StatusCode, Value),
        now: DateTime<Utc>,
    ) {
        self.0.insert(key.to_owned(), StoredResponse { method_and_path, parameters, response, stored_at: now });
    }
}
