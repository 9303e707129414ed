//! What the payment gateway and the mail service tell us by themselves. It comes at least once, late and in no order: it only says
//! what to look at again.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod mail_feedback;
mod stripe_events;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use rest::Problem;

pub use mail_feedback::{FeedbackError, MailFeedback};
pub use stripe_events::{StripeEvents, Told, ToldError};

/// An event of Stripe's is smaller.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Logged for each message that is not signed by Stripe. An alarm in `template.yaml` matches it.
pub const NOT_SIGNED: &str = "a message is not signed by Stripe";
/// Logged for each event that failed and that Stripe will send again. An alarm in `template.yaml` matches it.
pub const EVENT_FAILED: &str = "an event of the gateway was not worked on";

/// `POST /webhooks/stripe`.
pub fn routes(events: Arc<StripeEvents>) -> Router {
    let stripe = post(take).layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
    Router::new().route("/webhooks/stripe", stripe).with_state(events)
}

/// Whatever is not answered with success, Stripe sends again for three days.
async fn take(
    State(events): State<Arc<StripeEvents>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, &'static str), Problem> {
    let signature = headers.get("stripe-signature").and_then(|value| value.to_str().ok()).unwrap_or_default();
    match events.take(signature, &body).await {
        Ok(_) => Ok((StatusCode::OK, "{\"received\": true}\n")),
        Err(ToldError::NotTaken(error)) => {
            tracing::warn!(%error, "{NOT_SIGNED}");
            Err(Problem::field("Stripe-Signature", error))
        }
        // It is the usual case of a payment that is being settled at this moment.
        Err(error @ ToldError::Held { .. }) => {
            tracing::info!(%error, "an event comes again");
            Err(Problem::in_progress())
        }
        Err(error) => {
            tracing::error!(%error, "{EVENT_FAILED}");
            Err(if error.is_transient() { Problem::unavailable() } else { Problem::internal() })
        }
    }
}
