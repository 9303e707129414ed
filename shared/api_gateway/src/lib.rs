//! The start and the middlewares of the HTTP functions behind API Gateway. Only the functions use this crate: the command has no API
//! Gateway, and does not compile the Lambda runtime.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod run;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use lambda_http::request::RequestContext;
use rest::{Problem, PublicUrl, TokenRules, set_caller};

pub use run::{encode_query_string, serve_router_in_lambda};

/// Adds the middlewares for functions behind API Gateway. One middleware sets the caller and the public URL of each
/// request. The other responds to requests with the method `OPTIONS`, which a browser sends before a request to another
/// origin. API Gateway adds to this response the headers that allow or forbid the browser's request ("Configure CORS for
/// HTTP APIs" in the documentation of API Gateway).
pub fn add_api_gateway_middlewares(router: Router, rules: TokenRules) -> Router {
    let with_context = router.layer(from_fn_with_state(rules, set_caller_and_public_url));
    with_context.layer(from_fn(respond_to_preflight))
}

/// Sets the caller of the request from the claims that the authorizer of API Gateway has verified, and the public URL
/// from the domain that API Gateway serves. A public URL of an inner layer replaces this URL.
async fn set_caller_and_public_url(State(rules): State<TokenRules>, mut request: Request, next: Next) -> Response {
    let context = match request.extensions().get() {
        Some(RequestContext::ApiGatewayV2(context)) => Some(context),
        _ => None,
    };
    let token = context.and_then(|context| context.authorizer.as_ref()?.jwt.as_ref());
    let rights = token.map_or_else(|| Err(Problem::unauthorized()), |token| rules.rights_of_claims(&token.claims));
    let public_url = context.and_then(|context| context.domain_name.as_deref()).map(PublicUrl::of_domain);
    set_caller(&mut request, rights);
    if let Some(public_url) = public_url {
        request.extensions_mut().insert(public_url);
    }
    next.run(request).await
}

/// Responds with 204 to a browser's preflight request (method `OPTIONS`). Passes every other request on to the routes.
async fn respond_to_preflight(request: Request, next: Next) -> Response {
    if request.method() == Method::OPTIONS { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await }
}
