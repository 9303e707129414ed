//! The engine as a server that speaks DynamoDB's protocol, to the AWS CLI, to NoSQL Workbench and to SDKs.
//!
//! The engine's own server allows any web page to ask, so this one takes its place. Any credentials will do, but they
//! must be there: a page can send neither them nor a target to another origin unless it is allowed to.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, DATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use dynoxide::auth_material::{AuthMaterial, validate};
use dynoxide::{Database, DynoxideError};

use crate::operations::carry_out;

const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
const TARGETS: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];
const ABOUT: &str = "This port speaks DynamoDB: aws dynamodb list-tables --endpoint-url http://...\n";

/// The route that an SDK speaks to.
pub(crate) fn dynamodb_router(database: Database) -> Router {
    Router::new()
        .route("/", post(answer).get(|| async { ABOUT }))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(database)
}

async fn answer(State(database): State<Database>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let target = header("x-amz-target").unwrap_or_default();
    let Some(operation) = TARGETS.iter().find_map(|prefix| target.strip_prefix(prefix)) else {
        let unknown = r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#;
        return json(StatusCode::BAD_REQUEST, unknown.to_owned());
    };
    let has_date_header = headers.contains_key("x-amz-date") || headers.contains_key(DATE);
    let given = AuthMaterial { authorization: header(AUTHORIZATION.as_str()), query: "", has_date_header };
    if let Some(lacking) = validate(given) {
        return json(StatusCode::BAD_REQUEST, lacking);
    }
    match carry_out(&database, operation, &body) {
        Ok(answer) => json(StatusCode::OK, answer),
        Err(error) => json(status(&error), error.to_json()),
    }
}

fn status(error: &DynoxideError) -> StatusCode {
    StatusCode::from_u16(error.status_code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn json(status: StatusCode, body: String) -> Response {
    (status, [(CONTENT_TYPE, "application/x-amz-json-1.0")], body).into_response()
}
