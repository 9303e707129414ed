//! A server that gives the AWS CLI, NoSQL Workbench and SDKs access to the engine with DynamoDB's protocol.
//!
//! This server replaces the engine's own server, which accepts requests from any web page. A request must have
//! credentials, but this server accepts any credentials. This requirement alone keeps foreign web pages out: a web page
//! cannot send an `Authorization` or `X-Amz-Target` header to another origin without the permission of that origin.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, DATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use dynoxide::Database;
use dynoxide::auth_material::{AuthMaterial, validate};

use crate::dynamodb_operations::execute_operation;
use crate::error_response::dynamodb_error_response;

/// The maximum size of the body of a request.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// The prefixes of the operation's name in the header `X-Amz-Target`.
const TARGET_PREFIXES: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];
/// The response to a GET request: a hint for a person who opens the port in a browser.
const DYNAMODB_ONLY_HINT: &str = "This port speaks DynamoDB: aws dynamodb list-tables --endpoint-url http://...\n";

/// Returns the routes of the server: all operations of DynamoDB use the path `/`.
pub(crate) fn dynamodb_router(database: Database) -> Router {
    Router::new()
        .route("/", post(respond_to_dynamodb_request).get(|| async { DYNAMODB_ONLY_HINT }))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(database)
}

/// Executes the operation that the header `X-Amz-Target` names, if the request has credentials.
async fn respond_to_dynamodb_request(State(database): State<Database>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let target = header("x-amz-target").unwrap_or_default();
    let Some(operation) = TARGET_PREFIXES.iter().find_map(|prefix| target.strip_prefix(prefix)) else {
        let unknown = r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#;
        return json_response(StatusCode::BAD_REQUEST, unknown.to_owned());
    };
    let has_date_header = headers.contains_key("x-amz-date") || headers.contains_key(DATE);
    let credentials = AuthMaterial { authorization: header(AUTHORIZATION.as_str()), query: "", has_date_header };
    if let Some(problem) = validate(credentials) {
        return json_response(StatusCode::BAD_REQUEST, problem);
    }
    match execute_operation(&database, operation, &body) {
        Ok(response) => json_response(StatusCode::OK, response),
        Err(error) => {
            let (status, body) = dynamodb_error_response(&error);
            json_response(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body)
        }
    }
}

fn json_response(status: StatusCode, body: String) -> Response {
    (status, [(CONTENT_TYPE, "application/x-amz-json-1.0")], body).into_response()
}
