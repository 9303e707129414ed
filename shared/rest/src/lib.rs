//! The parts that all routes of the HTTP API share, whichever Lambda function serves them.
//!
//! Every request has a [`Caller`], which a middleware of the server creates from the verified claims of the token. If a
//! request has no caller, every route that needs a caller returns 401 or 403, with the reason. A request for the data of
//! another account returns 404. Errors are problems (RFC 9457), all created in `problem.rs`, with the types in `problem_type.rs`.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod account_actions;
mod actor;
mod authentication;
pub mod body;
mod caller;
mod config;
pub mod cursor;
pub mod etag;
pub mod html_page;
pub mod idempotency;
pub mod list;
pub mod openapi;
pub mod parameters;
mod problem;
mod problem_type;
mod public_url;
pub mod request_input;
mod request_time;
mod role;
mod token_rules;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn, map_response};
use axum::response::{IntoResponse, Response};

pub use account_actions::{AccountAction, AccountActions};
pub use actor::{RequestActor, TokenSubject};
pub use authentication::set_caller;
pub use caller::{AdminAccess, Caller, ConfidentialAccess, OperatorAccess};
pub use config::*;
pub use problem::Problem;
pub use problem_type::ProblemType;
pub use public_url::PublicUrl;
pub use request_time::RequestTime;
pub use role::Role;
pub use token_rules::{COMPUTED_ACCOUNT_PREFIX, CallerRights, TokenRules, account_of_subject};

/// Completes `routes` with a 404 for unknown paths, a 405 for unknown methods, and the headers of all responses. The
/// server must add a [`Caller`] to each request, with [`set_caller`].
pub fn complete_router<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .fallback(async || Problem::not_found("there is nothing at this path"))
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .layer(map_response(finish_response))
        .layer(from_fn(show_problem_to_browser))
}

/// If the request comes from a browser and the response is a problem, returns a web page in place of the problem's
/// JSON.
async fn show_problem_to_browser(request: Request, next: Next) -> Response {
    let is_browser = html_page::prefers_html(request.headers());
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>().filter(|_| is_browser) else { return response };
    let mut page = html_page::html_response(problem.to_html_page());
    *page.status_mut() = response.status();
    for name in [header::CACHE_CONTROL, header::WWW_AUTHENTICATE, header::ALLOW, header::RETRY_AFTER] {
        if let Some(value) = response.headers().get(&name) {
            page.headers_mut().insert(name, value.clone());
        }
    }
    page
}

/// Forbids caches to store the response, since it contains personal data, and ends its body with a newline.
async fn finish_response(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The body of every response is completely in memory, so reading it does not fail.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else { return Problem::internal_error().into_response() };
    let mut text = Vec::from(bytes);
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    Response::from_parts(parts, Body::from(text))
}
