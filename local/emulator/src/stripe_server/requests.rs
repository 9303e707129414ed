//! Requests to the stand-in, by HTTP or from the same process.

use std::sync::Arc;

use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde_json::Value;

use super::accounts::missing_permission_response;
use super::{
    STRIPE_KEY, STRIPE_RESTRICTED_KEY, STRIPE_VERSION, StripeFault, StripeServer, invalid_request_response,
    parse_parameters, stripe_error_response,
};

/// The header that states whether the client may repeat the request.
pub(super) const SHOULD_RETRY: &str = "Stripe-Should-Retry";

/// An HTTP request to the stand-in for Stripe.
#[derive(Clone, Copy, Debug)]
pub struct StripeRequest<'a> {
    pub method: &'a Method,
    pub path: &'a str,
    pub headers: &'a HeaderMap,
    /// The query of a GET request, or the form of any other request.
    pub parameters: &'a str,
}

/// An HTTP response of the stand-in for Stripe.
#[derive(Clone, Debug)]
pub struct StripeResponse {
    pub status: StatusCode,
    pub body: Value,
    /// Whether the response has the header `Stripe-Should-Retry: true`.
    pub should_retry: bool,
    /// The value of the header `Retry-After`, in seconds. 0 if there is no rate limit.
    pub retry_after: u32,
    /// Whether the response never arrives.
    pub is_late: bool,
}

impl StripeServer {
    /// Returns the response to `request`.
    pub fn respond(&self, request: &StripeRequest<'_>) -> StripeResponse {
        let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
        let fault = self.next_fault(request);
        let is_form = request.parameters.is_empty()
            || request.method == Method::GET
            || header("content-type") == Some(FORM_CONTENT_TYPE);
        let key = header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        let (status, body) = if key != STRIPE_KEY && key != STRIPE_RESTRICTED_KEY {
            stripe_error_response(401, "invalid_request_error", None)
        } else if header("stripe-version") != Some(STRIPE_VERSION) || !is_form {
            invalid_request_response("parameter_invalid")
        } else if key == STRIPE_RESTRICTED_KEY && request.path == "/v1/account" {
            missing_permission_response("rak_accounts_kyc_basic_read")
        } else if key == STRIPE_RESTRICTED_KEY && request.path == "/v1/webhook_endpoints" {
            missing_permission_response("rak_webhook_read")
        } else {
            match parse_parameters(request.parameters) {
                None => invalid_request_response("parameter_invalid"),
                Some(parameters) => {
                    let host = header("host").unwrap_or_default();
                    let key = header("idempotency-key");
                    self.respond_with_fault(request.method, host, request.path, key, parameters, fault)
                }
            }
        };
        StripeResponse {
            status,
            body,
            should_retry: fault.is_some_and(StripeFault::may_retry),
            is_late: fault == Some(StripeFault::ResponseTooLate),
            retry_after: match fault {
                Some(StripeFault::RateLimitedFor(seconds)) => seconds,
                _ => 0,
            },
        }
    }
}

/// The content type of a form.
const FORM_CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

/// Responds to an HTTP request from a customer's browser (to a checkout page) or from a program (to the API).
pub(super) async fn handle_http_request(State(server): State<Arc<StripeServer>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = to_bytes(body, 1_000_000).await.unwrap_or_default();
    let (now, form) = (server.clock.now(), std::str::from_utf8(&body).unwrap_or_default());
    if let Some(page) = server.lock_state().respond_to_browser(&parts.method, parts.uri.path(), form, now) {
        return page;
    }
    let parameters = if parts.method == Method::GET {
        parts.uri.query().unwrap_or_default()
    } else {
        std::str::from_utf8(&body).unwrap_or("&&")
    };
    let (path, headers) = (parts.uri.path(), &parts.headers);
    let response = server.respond(&StripeRequest { method: &parts.method, path, headers, parameters });
    if response.is_late {
        // The response must not arrive, so this handler waits until the client closes the connection.
        std::future::pending::<()>().await;
    }
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::RETRY_AFTER, response.retry_after.to_string()),
    ];
    let should_retry = response.should_retry.then_some([(SHOULD_RETRY, "true")]);
    (response.status, headers, should_retry.map(AppendHeaders), response.body.to_string()).into_response()
}
