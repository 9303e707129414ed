//! Random faults of the stand-in, decided by a seed. A request gets an error response before or after it takes effect.
//! Only some of these responses are stored under the idempotency key. Some requests get an error response first and are
//! executed hours later. Some responses mislead: for hours they show a payment as canceled although it succeeded, or a
//! list contains an object twice, or an object of another program.

use std::collections::BTreeMap;

use axum::http::Method;
use chrono::{DateTime, TimeDelta, Utc};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::requests::StripeRequest;
use super::{ServerState, StripeFault, StripeServer};

/// The status and the type of error responses that do not show whether a payment was made. Stripe documents all of
/// these statuses except 408 and 425 ("Errors" in the API reference).
const AMBIGUOUS_ERRORS: [(u16, &str); 8] = [
    (400, "api_error"),
    (402, "api_error"),
    (402, "card_error"),
    (404, "api_error"),
    (408, "invalid_request_error"),
    (424, "invalid_request_error"),
    (424, "api_error"),
    (425, "invalid_request_error"),
];
/// The maximum delay of a deferred request, in hours. With this maximum, the request is executed before Dueday makes
/// the next attempt, which has another idempotency key.
const MAX_DEFERRAL_HOURS: i64 = 20;

/// The random faults of the stand-in.
pub(super) struct RandomFaults {
    rng: ChaCha8Rng,
    /// The average number of requests in a thousand that have a fault.
    per_thousand: u32,
}

/// A request that got an error response and will be executed later.
pub(super) struct DeferredRequest {
    method_and_path: String,
    parameters: BTreeMap<String, String>,
    received_at: DateTime<Utc>,
    execute_at: DateTime<Utc>,
}

impl DeferredRequest {
    pub fn new(
        method_and_path: &str,
        parameters: BTreeMap<String, String>,
        received_at: DateTime<Utc>,
        hours: i64,
    ) -> Self {
        Self {
            method_and_path: method_and_path.to_owned(),
            parameters,
            received_at,
            execute_at: received_at + TimeDelta::hours(hours),
        }
    }
}

impl RandomFaults {
    /// Creates random faults: on average, `per_thousand` of a thousand requests have a fault.
    pub fn new(seed: u64, per_thousand: u32) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), per_thousand }
    }

    /// Returns the fault of `request`, if it has one.
    pub fn next_fault(&mut self, request: &StripeRequest<'_>) -> Option<StripeFault> {
        if !self.rng.random_ratio(self.per_thousand.min(1_000), 1_000) {
            return None;
        }
        if request.method == Method::GET {
            return Some(match self.rng.random_range(0..5) {
                0 => StripeFault::RateLimited,
                1 => StripeFault::NotBegun,
                2 => StripeFault::ListedTwice,
                3 => StripeFault::ForeignObjectListed,
                _ => StripeFault::Busy,
            });
        }
        let creates_payment = request.path == "/v1/payment_intents";
        let (status, kind) = AMBIGUOUS_ERRORS.choose(&mut self.rng).copied().unwrap_or((424, "api_error"));
        Some(match self.rng.random_range(0..14) {
            0 => StripeFault::RateLimited,
            1 => StripeFault::LockTimeout,
            2 => StripeFault::InProgress,
            3 => StripeFault::Busy,
            4 => StripeFault::BusyAfter,
            5 => StripeFault::FailsAfter,
            6 => StripeFault::LostAfter,
            7 if creates_payment => {
                let status = if self.rng.random() { 500 } else { status };
                StripeFault::ExecutedLater { status, hours: self.rng.random_range(1..=MAX_DEFERRAL_HOURS) }
            }
            8 if creates_payment => {
                StripeFault::CanceledUntilRead { hours: self.rng.random_range(1..=MAX_DEFERRAL_HOURS) }
            }
            9 if creates_payment => {
                StripeFault::CanceledWithPaidCharge { hours: self.rng.random_range(1..=MAX_DEFERRAL_HOURS) }
            }
            7..12 => StripeFault::Error { status, kind, is_carried_out: true },
            _ => StripeFault::Error { status, kind, is_carried_out: false },
        })
    }
}

impl StripeServer {
    /// Returns the instant at which the next deferred request is executed; `None` if no request is deferred.
    pub fn next_deferred_request(&self) -> Option<DateTime<Utc>> {
        self.lock_state().deferred_requests.iter().map(|request| request.execute_at).min()
    }
}

impl ServerState {
    /// Executes the deferred requests that are due by `now`.
    pub(super) fn execute_deferred_requests(&mut self, now: DateTime<Utc>) {
        let deferred_requests = std::mem::take(&mut self.deferred_requests);
        let (due, waiting): (Vec<DeferredRequest>, Vec<DeferredRequest>) =
            deferred_requests.into_iter().partition(|request| request.execute_at <= now);
        self.deferred_requests = waiting;
        for DeferredRequest { method_and_path, parameters, received_at, .. } in due {
            let Some((_, path)) = method_and_path.split_once(' ') else { continue };
            self.execute(&Method::POST, "", path, &parameters, received_at);
        }
    }
}
