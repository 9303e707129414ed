//! What all routes of the HTTP API have in common, whichever function serves them.
//!
//! Every request has a [`Caller`], made at the edge from claims that the authorizer has verified. Without one every
//! route but health is 401. What a caller may not see is 404. Errors are RFC 9457 problems, all made in `problem.rs`.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod body;
pub mod caller;
mod config;
pub mod cursor;
pub mod etag;
pub mod html_page;
pub mod idempotency;
pub mod input;
pub mod list;
mod now;
pub mod openapi;
pub mod parameters;
mod problem;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};

pub use caller::{Caller, Claims};
pub use config::*;
pub use now::Now;
pub use problem::Problem;

/// `routes`, and an answer to all that is none of them. Whoever serves it puts a [`Caller`] into each request.
pub fn router<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .fallback(async || Problem::not_found("there is nothing at this path"))
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .layer(map_response(finished))
}

/// `router` behind API Gateway: callers come from the authorizer's claims.
pub fn behind_gateway(router: Router, claims: Claims) -> Router {
    router.layer(from_fn_with_state(claims, caller::from_claims))
}

/// What all answers have in common: they are about people, so that no cache keeps them, and they end with a newline.
async fn finished(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Every answer was made whole in memory.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else { return Problem::internal().into_response() };
    let mut text = Vec::from(bytes);
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    Response::from_parts(parts, Body::from(text))
}
