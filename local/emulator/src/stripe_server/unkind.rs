//! A stand-in that behaves as badly as Stripe may, by seed: errors before and after the effect, kept under the key or not, and server
//! errors whose effect comes hours later.

use std::collections::BTreeMap;

use axum::http::Method;
use chrono::{DateTime, TimeDelta, Utc};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::requests::StripeRequest;
use super::{Books, StripeFault, StripeServer};

/// Errors that do not say whether anything was made. Of other client errors than 400, 402 and 404 nothing is documented.
const UNPROVEN: [(u16, &str); 8] = [
    (400, "api_error"),
    (402, "api_error"),
    (402, "card_error"),
    (404, "api_error"),
    (408, "invalid_request_error"),
    (424, "invalid_request_error"),
    (424, "api_error"),
    (425, "invalid_request_error"),
];
/// A server error is repaired within so many hours: before a later attempt under another key is made.
const LATEST_REPAIR_HOURS: i64 = 20;

/// What goes wrong, by seed.
pub(super) struct Unkind {
    rng: ChaCha8Rng,
    per_thousand: u32,
}

/// A request that will be carried out after it was answered with an error.
pub(super) struct Repair {
    method_and_path: String,
    parameters: BTreeMap<String, String>,
    asked_at: DateTime<Utc>,
    at: DateTime<Utc>,
}

impl Repair {
    pub fn new(
        method_and_path: &str,
        parameters: BTreeMap<String, String>,
        asked_at: DateTime<Utc>,
        hours: i64,
    ) -> Self {
        Self {
            method_and_path: method_and_path.to_owned(),
            parameters,
            asked_at,
            at: asked_at + TimeDelta::hours(hours),
        }
    }
}

impl Unkind {
    pub fn new(seed: u64, per_thousand: u32) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), per_thousand }
    }

    /// The fault of `request`.
    pub fn fault(&mut self, request: &StripeRequest<'_>) -> Option<StripeFault> {
        if !self.rng.random_ratio(self.per_thousand.min(1_000), 1_000) {
            return None;
        }
        if request.method == Method::GET {
            return Some(match self.rng.random_range(0..3) {
                0 => StripeFault::RateLimited,
                1 => StripeFault::NotBegun,
                _ => StripeFault::Busy,
            });
        }
        let creates_payment = request.path == "/v1/payment_intents";
        let (status, kind) = UNPROVEN.choose(&mut self.rng).copied().unwrap_or((424, "api_error"));
        Some(match self.rng.random_range(0..12) {
            0 => StripeFault::RateLimited,
            1 => StripeFault::LockTimeout,
            2 => StripeFault::InProgress,
            3 => StripeFault::Busy,
            4 => StripeFault::BusyAfter,
            5 => StripeFault::FailsAfter,
            6 => StripeFault::LostAfter,
            7 if creates_payment => {
                let status = if self.rng.random() { 500 } else { status };
                StripeFault::RepairedAfter { status, hours: self.rng.random_range(1..=LATEST_REPAIR_HOURS) }
            }
            7..10 => StripeFault::Error { status, kind, is_carried_out: true },
            _ => StripeFault::Error { status, kind, is_carried_out: false },
        })
    }
}

impl StripeServer {
    /// When the next request is repaired that was answered with an error.
    pub fn next_repair(&self) -> Option<DateTime<Utc>> {
        self.books().repairs.iter().map(|repair| repair.at).min()
    }
}

impl Books {
    /// Carries out the requests that Stripe has repaired by `now`.
    pub(super) fn repair(&mut self, now: DateTime<Utc>) {
        let repairs = std::mem::take(&mut self.repairs);
        let (due, waiting): (Vec<Repair>, Vec<Repair>) = repairs.into_iter().partition(|repair| repair.at <= now);
        self.repairs = waiting;
        for Repair { method_and_path, parameters, asked_at, .. } in due {
            let Some((_, path)) = method_and_path.split_once(' ') else { continue };
            self.carry_out((&Method::POST, "", path), &parameters, asked_at);
        }
    }
}
