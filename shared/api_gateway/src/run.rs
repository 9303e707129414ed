//! Runs the routes of an HTTP function as a Lambda function.

use axum::Router;
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Error, LambdaEvent, lambda_runtime};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tower::util::MapRequest;

/// The ASCII characters that API Gateway passes on in a query string, but that no URI contains.
const FORBIDDEN_IN_QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');

/// Receives the requests of API Gateway, or of the function's URL, and passes them to `router`.
///
/// # Errors
/// If the Lambda runtime does not respond.
pub async fn serve_router_in_lambda(router: Router) -> Result<(), Error> {
    lambda_runtime::run(MapRequest::new(Adapter::from(router), encode_query_string)).await
}

/// Returns `event` with a query string that is a part of a valid URI. A client can send characters such as a space without
/// encoding them. API Gateway passes them on unchanged, and `lambda_http` panics if they are not encoded.
pub fn encode_query_string(mut event: LambdaEvent<LambdaRequest>) -> LambdaEvent<LambdaRequest> {
    if let LambdaRequest::ApiGatewayV2(request) = &mut event.payload
        && let Some(query) = &mut request.raw_query_string
    {
        *query = utf8_percent_encode(query, FORBIDDEN_IN_QUERY).to_string();
    }
    event
}
