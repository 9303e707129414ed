//! Tests of the error messages of the table, with the real AWS SDK and a stand-in for DynamoDB that refuses every
//! request. The messages contain the cause, and no personal data.

use std::io;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::{Client, Config};
use axum::Router;
use axum::http::StatusCode;
use serde_json::{Value, json};
use store::{Table, TableError};

/// The message of DynamoDB if a function lacks a permission.
const DENIED: &str = "User: arn:aws:sts::123456789012:assumed-role/dueday-api/dueday-api is not authorized to perform: \
                      dynamodb:GetItem on resource: arn:aws:dynamodb:eu-west-1:123456789012:table/dueday because no \
                      identity-based policy allows the dynamodb:GetItem action";

/// Returns a table at `url`, whose client sends each request once.
fn table_at(url: &str) -> Table {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .retry_config(RetryConfig::disabled())
        .endpoint_url(url);
    Table::new(Client::from_conf(config.build()), "dueday")
}

/// Returns the error of a request to a DynamoDB that responds with `body`.
async fn error_of(body: Value) -> TableError {
    let respond = move || {
        let body = body.to_string();
        async move { (StatusCode::BAD_REQUEST, [("x-amzn-requestid", "REQ1")], body) }
    };
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(respond)).await });
    table_at(&url).get_settings().await.unwrap_err()
}

/// Returns an error response of DynamoDB.
fn error_response(code: &str, message: &str) -> Value {
    json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": message })
}

#[tokio::test]
async fn missing_permission_is_named_with_the_id_of_the_request() {
    let error = error_of(error_response("AccessDeniedException", DENIED)).await;
    assert_eq!(error.to_string(), format!("GetItem failed: AccessDeniedException: {DENIED} (request id REQ1)"));
}

#[tokio::test]
async fn values_of_a_refused_request_are_not_in_the_message() {
    let message = "1 validation error detected: Value '[Ada Lovelace, ada@example.com]' at 'key' failed to satisfy \
                   constraint: Member must have length less than or equal to 2";
    let error = error_of(error_response("ValidationException", message)).await;
    assert_eq!(
        error.to_string(),
        "GetItem failed: ValidationException: 1 validation error detected: Value '<redacted>' at 'key' failed to \
         satisfy constraint: Member must have length less than or equal to 2 (request id REQ1)"
    );
    assert!(!format!("{error:?}").contains("Ada"), "{error:?}");
}

#[tokio::test]
async fn item_in_the_response_is_in_no_output() {
    let mut response = error_response("ConditionalCheckFailedException", "The conditional request failed");
    response["Item"] = json!({ "Email": { "S": "ada@example.com" } });
    let error = error_of(response).await;
    assert!(!format!("{error} {error:?}").contains("ada@"), "{error:?}");
}

#[tokio::test]
async fn connection_error_contains_all_causes() {
    let closed_listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", closed_listener.local_addr().unwrap());
    drop(closed_listener);
    let error = table_at(&url).get_settings().await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("GetItem failed: dispatch failure: io error: "), "{text}");
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused).to_string();
    assert!(text.to_lowercase().contains(&refused), "{text}");
    assert!(error.is_transient());
}

/// Checks that a log line with an error of the table, which contains the field `error` only, shows the cause once.
#[tokio::test]
async fn cause_is_logged_once() {
    let error = error_of(error_response("AccessDeniedException", DENIED)).await;
    let (lines, logging) = testkit::capture_log_lines();
    drop(rest::Problem::from(error));
    drop(logging);
    let logged = lines.fields_of_lines();
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert_eq!(logged[0].to_string().matches("is not authorized to perform").count(), 1, "{logged:?}");
}
