//! Sets the caller of each request from the claims of its token, which an authorizer has verified.

use std::collections::HashMap;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use lambda_http::request::RequestContext;

use crate::caller::{Caller, ConfidentialAccess, RefusedToken};
use crate::{Problem, Rights, TokenRules, TokenSubject};

/// Sets the caller of `request`, the subject of its token, and its access to confidential data. `rights` are the rights
/// that the verified claims of the token grant. If `rights` is an error, the token grants no rights: the request gets
/// no caller, and routes that need a caller return this error. Removes a caller that was set before.
pub fn set_caller(request: &mut Request, rights: Result<Rights, Problem>) {
    let extensions = request.extensions_mut();
    extensions.remove::<Caller>();
    extensions.remove::<ConfidentialAccess>();
    extensions.remove::<TokenSubject>();
    match rights {
        Ok(Rights { caller, has_confidential_access, subject }) => {
            extensions.insert(caller);
            extensions.insert(TokenSubject(subject));
            if has_confidential_access {
                extensions.insert(ConfidentialAccess);
            }
        }
        Err(problem) => {
            extensions.insert(RefusedToken(problem));
        }
    }
}

/// Sets the caller of the request from the claims that API Gateway has verified. This is a middleware for functions
/// behind API Gateway.
pub(crate) async fn set_caller_from_claims(
    State(rules): State<TokenRules>,
    mut request: Request,
    next: Next,
) -> Response {
    let rights = match claims(&request) {
        Some(claims) => rules.rights(claims),
        None => Err(Problem::unauthorized()),
    };
    set_caller(&mut request, rights);
    next.run(request).await
}

/// Returns the claims that the authorizer of API Gateway has verified; `None` if the request has no token.
fn claims(request: &Request) -> Option<&HashMap<String, String>> {
    let context = request.extensions().get::<RequestContext>()?;
    let RequestContext::ApiGatewayV2(context) = context else { return None };
    Some(&context.authorizer.as_ref()?.jwt.as_ref()?.claims)
}
