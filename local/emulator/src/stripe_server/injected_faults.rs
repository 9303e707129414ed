//! The faults that the stand-in for Stripe can have.

use super::{JsonResponse, stripe_error_response};

/// A fault of a request to the stand-in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripeFault {
    /// 429: the rate limiter refuses the request before it begins. Nothing is stored under its idempotency key (see
    /// "Rate limits" in Stripe's documentation).
    RateLimited,
    /// 429: another request has locked the customer ("Rate limits", object lock time-outs).
    LockTimeout,
    /// 409: a request with the same idempotency key is in progress ("Advanced error handling").
    InProgress,
    /// 503: the request fails before it begins.
    NotBegun,
    /// 503 with `Stripe-Should-Retry: true`: the request fails before it begins, and the client may repeat it ("Advanced error
    /// handling").
    Busy,
    /// 500: the request fails before it has an effect, and the error is stored under its idempotency key.
    FailsBefore,
    /// As `RateLimited`, and the response contains the number of seconds that the client should wait.
    RateLimitedFor(u32),
    /// 500: the request takes effect, and the error is stored under its idempotency key.
    FailsAfter,
    /// 502: the request takes effect, but its response is lost; the true response is stored under its idempotency key.
    LostAfter,
    /// The request takes effect, but the response is delayed until the client has closed the connection.
    ResponseTooLate,
    /// 503 with `Stripe-Should-Retry: true`: the request takes effect, and its true response is stored under its
    /// idempotency key.
    BusyAfter,
    /// 403: the API key lacks a permission. The request does not begin.
    Forbidden,
    /// The request gets this error response, which is stored under the idempotency key and contains no PaymentIntent.
    /// `is_carried_out` states whether the request takes effect.
    Error { status: u16, kind: &'static str, is_carried_out: bool },
    /// The request gets an `api_error`, which is stored under the idempotency key, and takes effect this number of
    /// hours later ("Low-level error handling" in Stripe's advanced documentation: Stripe reconciles partly executed
    /// requests later).
    ExecutedLater { status: u16, hours: i64 },
    /// As [`StripeFault::BusyAfter`], with status 409.
    ConflictAfter,
    /// 402 with an `api_error`, before the request begins. Nothing is stored under the idempotency key.
    ApiErrorBefore,
    /// A successful charge is shown as [`super::MisleadingView::CanceledUntilRead`] for this number of hours.
    CanceledUntilRead { hours: i64 },
    /// A successful charge is shown as [`super::MisleadingView::CanceledWithPaidCharge`] for this number of hours.
    CanceledWithPaidCharge { hours: i64 },
    /// A list page contains its first object twice.
    ListedTwice,
    /// A list page contains an object of another program, with an unknown currency and an unknown status.
    ForeignObjectListed,
}

impl StripeFault {
    /// Returns the error of a request that is refused before it begins; `None` for other faults.
    pub(super) fn refusal_response(self) -> Option<JsonResponse> {
        match self {
            Self::RateLimited | Self::RateLimitedFor(_) => {
                Some(stripe_error_response(429, "invalid_request_error", Some("rate_limit")))
            }
            Self::LockTimeout => Some(stripe_error_response(429, "invalid_request_error", Some("lock_timeout"))),
            Self::InProgress => Some(stripe_error_response(409, "idempotency_error", Some("idempotency_key_in_use"))),
            Self::NotBegun | Self::Busy => Some(stripe_error_response(503, "api_error", None)),
            Self::Forbidden => {
                Some(stripe_error_response(403, "invalid_request_error", Some("more_permissions_required")))
            }
            Self::ApiErrorBefore => Some(stripe_error_response(402, "api_error", None)),
            _ => None,
        }
    }

    /// Returns the error that replaces the true response of a request that took effect; `None` for other faults.
    pub(super) fn replacement_response(self) -> Option<JsonResponse> {
        match self {
            Self::LostAfter => Some(stripe_error_response(502, "api_error", None)),
            Self::BusyAfter => Some(stripe_error_response(503, "api_error", None)),
            Self::ConflictAfter => {
                Some(stripe_error_response(409, "idempotency_error", Some("idempotency_key_in_use")))
            }
            _ => None,
        }
    }

    /// Returns whether the response states that the client may repeat the request.
    pub(super) fn may_retry(self) -> bool {
        matches!(self, Self::Busy | Self::BusyAfter | Self::ConflictAfter)
    }
}
