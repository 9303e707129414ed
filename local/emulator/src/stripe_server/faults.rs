//! The faults of the stand-in's responses.

use super::{Answer, error};

/// What goes wrong with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripeFault {
    /// "Rate limits": the limiter refuses it before anything begins; nothing is kept under its key.
    RateLimited,
    /// "Rate limits", object lock time-outs: another request holds the customer.
    LockTimeout,
    /// "Advanced error handling": a request under the same key is being worked on.
    InProgress,
    /// It fails before anything begins.
    NotBegun,
    /// As before, and the answer says that it may be sent again ("Advanced error handling", on `Stripe-Should-Retry`).
    Busy,
    /// It fails before it has an effect, and the error is kept under its key.
    FailsKept,
    /// As `RateLimited`; the response asks to wait for so many seconds.
    RateLimitedFor(u32),
    /// It is carried out, and the answer is an error of Stripe's, which is kept under its key.
    FailsAfter,
    /// It is carried out, and the answer is lost on the way; the true one is kept under its key.
    LostAfter,
    /// It is carried out, and its answer does not come before whoever asks has given up.
    Late,
    /// It is carried out and its true result is kept under its key, and the response is 503 with `Stripe-Should-Retry: true`.
    BusyAfter,
    /// The key may not do this. Nothing begins.
    Forbidden,
    /// The response is this error, which is kept under the key of the request, and names no PaymentIntent.
    Error { status: u16, kind: &'static str, is_carried_out: bool },
    /// The response is an error of type `api_error`, which is kept under the key. The request is carried out so many hours later
    /// ("Low-level error handling" in Stripe's advanced documentation: Stripe reconciles partly executed requests later).
    RepairedAfter { status: u16, hours: i64 },
    /// As [`StripeFault::BusyAfter`], with 409.
    ConflictAfter,
    /// The response is 402 with an `api_error`, before anything begins. Nothing is kept under the key.
    ApiErrorBefore,
}

impl StripeFault {
    /// Returns the response that replaces the true one of a request that took effect.
    pub(super) fn response(self) -> Option<Answer> {
        match self {
            Self::LostAfter => Some(error(502, "api_error", None)),
            Self::BusyAfter => Some(error(503, "api_error", None)),
            Self::ConflictAfter => Some(error(409, "idempotency_error", Some("idempotency_key_in_use"))),
            _ => None,
        }
    }

    /// Returns whether the response says that the same request may be sent again.
    pub(super) fn may_retry(self) -> bool {
        matches!(self, Self::Busy | Self::BusyAfter | Self::ConflictAfter)
    }
}
