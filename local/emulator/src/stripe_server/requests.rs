//! Requests to the stand-in, by HTTP or from the same process.

use std::sync::Arc;

use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde_json::Value;

use super::accounts::forbidden;
use super::{STRIPE_KEY, STRIPE_RESTRICTED_KEY, STRIPE_VERSION, StripeFault, StripeServer, error, invalid, pairs};

/// The header that says whether the same request may be sent again.
pub(super) const SHOULD_RETRY: &str = "Stripe-Should-Retry";

/// One request to the stand-in.
#[derive(Clone, Copy, Debug)]
pub struct StripeRequest<'a> {
    pub method: &'a Method,
    pub path: &'a str,
    pub headers: &'a HeaderMap,
    /// The query of a GET, the form of all others.
    pub parameters: &'a str,
}

/// The response of the stand-in.
#[derive(Clone, Debug)]
pub struct StripeResponse {
    pub status: StatusCode,
    pub body: Value,
    /// Whether the header `Stripe-Should-Retry: true` goes with it.
    pub should_retry: bool,
    /// The header `Retry-After`, in seconds.
    pub retry_after: u32,
    /// Whether it never arrives.
    pub is_late: bool,
}

impl StripeServer {
    /// Responds to `request`.
    pub fn respond(&self, request: &StripeRequest<'_>) -> StripeResponse {
        let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
        let fault = self.next_fault(request);
        let is_form =
            request.parameters.is_empty() || request.method == Method::GET || header("content-type") == Some(FORM);
        let key = header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        let (status, body) = if key != STRIPE_KEY && key != STRIPE_RESTRICTED_KEY {
            error(401, "invalid_request_error", None)
        } else if header("stripe-version") != Some(STRIPE_VERSION) || !is_form {
            invalid("parameter_invalid")
        } else if key == STRIPE_RESTRICTED_KEY && request.path == "/v1/account" {
            forbidden("rak_accounts_kyc_basic_read")
        } else {
            match pairs(request.parameters) {
                None => invalid("parameter_invalid"),
                Some(parameters) => {
                    let asked = (request.method, header("host").unwrap_or_default(), request.path);
                    self.take(asked, header("idempotency-key"), parameters, fault)
                }
            }
        };
        StripeResponse {
            status,
            body,
            should_retry: fault.is_some_and(StripeFault::may_retry),
            is_late: fault == Some(StripeFault::Late),
            retry_after: match fault {
                Some(StripeFault::RateLimitedFor(seconds)) => seconds,
                _ => 0,
            },
        }
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

pub(super) async fn answer(State(server): State<Arc<StripeServer>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = to_bytes(body, 1_000_000).await.unwrap_or_default();
    let (now, browsed) = (server.clock.now(), std::str::from_utf8(&body).unwrap_or_default());
    if let Some(page) = server.books().browsed(&parts.method, parts.uri.path(), browsed, now) {
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
        // Until the connection is closed from the other end.
        std::future::pending::<()>().await;
    }
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::RETRY_AFTER, response.retry_after.to_string()),
    ];
    let should_retry = response.should_retry.then_some([(SHOULD_RETRY, "true")]);
    (response.status, headers, should_retry.map(AppendHeaders), response.body.to_string()).into_response()
}
