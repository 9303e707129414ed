//! The first event of each Lambda function, for the measurement of the function's start time. The function processes
//! this event completely and quickly.

use std::net::Ipv4Addr;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::{Json, Router};
use chrono::{DateTime, Utc};
use gateways::SigningSecrets;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Failure;

/// The secret that signs the event with which the start of the inbound webhook function is measured.
pub const STRIPE_SIGNING_SECRET: &str = "whsec_0123456789abcdef";

/// The event that starts a run for a day on which nothing was due.
const EVENT_OF_DAY_WITHOUT_ROWS: &str = r#"{"date":"2020-01-01"}"#;
/// An event of Stripe that concerns no payment.
const STRIPE_EVENT: &str =
    r#"{"id":"evt_1","object":"event","type":"product.updated","data":{"object":{"id":"prod_1","object":"product"}}}"#;

/// Returns the first event of the function whose binary has the name `function`. An event of Stripe is signed at the
/// time `now`.
///
/// # Errors
/// If this module has no event for the function.
pub fn create_first_event(function: &str, now: DateTime<Utc>) -> Result<String, Failure> {
    let event = match function {
        "api" => include_str!("../../../events/apigateway-health.json"),
        "reminders" | "payments" => EVENT_OF_DAY_WITHOUT_ROWS,
        // Two stream records about changes of the table. The function publishes two events on the bus.
        "events" => include_str!("../../../events/dynamodb-stream.json"),
        // An event of a type to which no webhook endpoint has subscribed.
        "deliver" => include_str!("../../../events/sqs-event.json"),
        // An event about a successful payment: the function mails a receipt to the customer.
        "notices" => include_str!("../../../events/sqs-paid.json"),
        "webhooks" => return create_signed_webhook(now),
        // A bounce: the mail address of the account does not exist, and the function marks the address.
        "mail-feedback" => include_str!("../../../events/sns-bounce.json"),
        // A request to fill the orders that wait for stock. No order waits for stock.
        "orders" => include_str!("../../../events/orders-fill.json"),
        // The function compares the stored payments of a day with those of the gateway. The day has no payments.
        "reconcile" => "{}",
        // A request to audit the table, which contains one account without subscriptions.
        "audit" => include_str!("../../../events/audit-table.json"),
        // The function finds no account whose erasure was requested.
        "erase" => "{}",
        // The function returns the account of the sandbox gateway.
        "sandbox" => include_str!("../../../events/function-url-account.json"),
        "orders-api" => include_str!("../../../events/apigateway-list-orders.json"),
        other => return Err(format!("the benchmark has no first event for the function {other}").into()),
    };
    Ok(event.to_owned())
}

/// Returns the request that API Gateway would send with [`STRIPE_EVENT`], signed at the time `now`.
fn create_signed_webhook(now: DateTime<Utc>) -> Result<String, Failure> {
    let mut request: Value = serde_json::from_str(include_str!("../../../events/apigateway-stripe.json"))?;
    let signature = SigningSecrets::parse(STRIPE_SIGNING_SECRET)?.sign(STRIPE_EVENT.as_bytes(), now);
    request["headers"]["stripe-signature"] = signature.into();
    request["isBase64Encoded"] = false.into();
    request["body"] = STRIPE_EVENT.into();
    Ok(request.to_string())
}

/// Checks that a function has processed its first event: the HTTP status is 200, and no message has failed.
///
/// # Errors
/// If the response reports a failure.
pub fn check_function_succeeded(response: &Value) -> Result<(), Failure> {
    let is_http_error = response.get("statusCode").is_some_and(|status| status != 200);
    let failures = response.get("batchItemFailures").and_then(Value::as_array);
    if is_http_error || failures.is_some_and(|failed| !failed.is_empty()) {
        return Err(format!("the first event failed: {response}").into());
    }
    Ok(())
}

/// Starts a stand-in for EventBridge, which accepts all events. Returns its URL.
pub async fn start_event_bridge() -> Result<String, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let routes = Router::new().fallback(accept_events);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(url)
}

/// Accepts the events of a PutEvents request.
async fn accept_events(body: Bytes) -> impl IntoResponse {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let count = request["Entries"].as_array().map_or(0, Vec::len);
    let entries: Vec<Value> = (0..count).map(|id| json!({ "EventId": id.to_string() })).collect();
    ([(CONTENT_TYPE, "application/x-amz-json-1.1")], Json(json!({ "FailedEntryCount": 0, "Entries": entries })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_success_refuses_http_errors_and_failed_messages() {
        assert!(
            check_function_succeeded(&json!({ "statusCode": 200 })).is_ok()
                && check_function_succeeded(&Value::Null).is_ok()
        );
        assert!(check_function_succeeded(&json!({ "batchItemFailures": [] })).is_ok());
        assert!(check_function_succeeded(&json!({ "statusCode": 400 })).is_err());
        assert!(check_function_succeeded(&json!({ "batchItemFailures": [{ "itemIdentifier": "1" }] })).is_err());
    }

    #[test]
    fn first_event_is_an_error_for_an_unknown_function() {
        assert!(create_first_event("webhooks", Utc::now()).is_ok_and(|event| event.contains("v1=")));
        assert!(create_first_event("invoices", Utc::now()).is_err());
    }
}
