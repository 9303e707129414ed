//! Inbound webhooks from the payment gateway and events from the mail service. Each event arrives at least once,
//! possibly late, and events arrive in any order. The content of an event is therefore not trusted: it only determines
//! which object is read again, in its current state.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod mail_feedback;
mod ses_message;
mod stripe_events;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use gateways::InboundWebhookError;
use rest::Problem;

pub use mail_feedback::{FeedbackError, MailFeedbackHandler};
pub use ses_message::UnreadableSesMessage;
pub use stripe_events::{InboundError, InboundOutcome, StripeEventHandler};

/// The largest accepted request body, in bytes. Events from Stripe are smaller.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The log message for a request without a valid signature of Stripe. A metric filter in `template.yaml` matches this
/// text.
pub const UNSIGNED_EVENT_MESSAGE: &str = "a message is not signed by Stripe";
/// The log message for an event whose processing failed and that Stripe will send again. A metric filter in
/// `template.yaml` matches this text.
pub const FAILED_EVENT_MESSAGE: &str = "an event of the gateway could not be processed";

/// Returns the router with `POST /webhooks/stripe`, the endpoint for inbound webhooks from Stripe.
pub fn stripe_webhook_routes(events: Arc<StripeEventHandler>) -> Router {
    let stripe = post(receive_stripe_event).layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
    Router::new().route("/webhooks/stripe", stripe).with_state(events)
}

/// Handles one inbound webhook from Stripe. Stripe sends an event again, for up to three days, until the response is a
/// success.
async fn receive_stripe_event(
    State(events): State<Arc<StripeEventHandler>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, &'static str), Problem> {
    let body = body.map_err(|_| Problem::body_too_large(MAX_BODY_BYTES))?;
    let signature = headers.get("stripe-signature").and_then(|value| value.to_str().ok()).unwrap_or_default();
    match events.handle(signature, &body).await {
        Ok(_) => Ok((StatusCode::OK, "{\"received\": true}\n")),
        // Stripe has signed the event, so it is not forged: the endpoint is not set up as the documentation says.
        Err(InboundError::NotVerified(
            error @ (InboundWebhookError::ThinPayload | InboundWebhookError::NotAnEvent),
        )) => {
            tracing::error!(%error, error_type = "NotVerified", "{FAILED_EVENT_MESSAGE}");
            Err(Problem::invalid_field("object", error))
        }
        Err(InboundError::NotVerified(error)) => {
            tracing::warn!(%error, error_type = "NotVerified", "{UNSIGNED_EVENT_MESSAGE}");
            Err(Problem::invalid_field("Stripe-Signature", error))
        }
        // Another worker is settling the payment at this moment. This is normal, so it is only logged. Stripe sends the
        // event again later.
        Err(error @ InboundError::AttemptLeased { .. }) => {
            tracing::info!(%error, error_type = error.error_type(), "an event is rejected until the lease of its attempt ends");
            Err(Problem::concurrent_change())
        }
        Err(error) => {
            tracing::error!(%error, error_type = error.error_type(), "{FAILED_EVENT_MESSAGE}");
            Err(if error.is_transient() { Problem::unavailable() } else { Problem::internal_error() })
        }
    }
}
