//! The requests with which `bench api` checks that all servers respond alike: requests of the five measured kinds, and
//! requests that the servers must refuse.

use chrono::{Days, NaiveDate};
use reqwest::Method;
use serde_json::{Value, json};

use super::request::{BenchmarkRequest, new_subscription_body, sign_up_body};

/// The account that exists before the first request, with one subscription and its receipts.
pub const EXISTING_ACCOUNT: &str = "acme";
/// The subscription of [`EXISTING_ACCOUNT`].
pub const EXISTING_SUBSCRIPTION: &str = "01JZXCVBNM0123456789ABCDEF";

/// The path of the subscriptions of [`EXISTING_ACCOUNT`].
const SUBSCRIPTIONS: &str = "/accounts/acme/subscriptions";

/// Returns the request that is sent to each server before the compared requests. The request signs a customer up: it
/// creates a subscription and charges its first payment.
pub fn first_sign_up(today: NaiveDate) -> BenchmarkRequest {
    subscription_creation_request(&sign_up_body(4, today)).with_header("idempotency-key", "order-4")
}

/// Returns all requests whose responses are compared, in order. `today` is the current date.
pub fn compared_requests(today: NaiveDate) -> Vec<BenchmarkRequest> {
    let mut all = accepted_requests(today);
    all.extend(refused_bodies(today).into_iter().map(|body| subscription_creation_request(&body)));
    all.extend(refused_changes());
    all.extend(refused_requests(today));
    all
}

/// Returns a request that creates a subscription of [`EXISTING_ACCOUNT`].
fn subscription_creation_request(body: &Value) -> BenchmarkRequest {
    BenchmarkRequest::with_body(Method::POST, SUBSCRIPTIONS, body)
}

/// Returns a request that changes [`EXISTING_SUBSCRIPTION`].
fn subscription_change_request(body: &Value) -> BenchmarkRequest {
    BenchmarkRequest::with_body(Method::PATCH, format!("{SUBSCRIPTIONS}/{EXISTING_SUBSCRIPTION}"), body)
}

/// Returns the body of a new subscription, in which `value` replaces the field at `path`. The field names in `path` are
/// separated by points.
fn new_subscription_body_with(path: &str, value: Value) -> Value {
    let mut body = new_subscription_body(1);
    let field = path.split('.').fold(&mut body, |object, name| &mut object[name]);
    *field = value;
    body
}

/// Returns the requests that the servers accept.
fn accepted_requests(today: NaiveDate) -> Vec<BenchmarkRequest> {
    let first_payment = sign_up_body(2, today);
    let signed_up = subscription_creation_request(&first_payment).with_header("idempotency-key", "order-1");
    vec![
        subscription_creation_request(&new_subscription_body(1)),
        subscription_creation_request(&new_subscription_body_with("email", json!("billing@acme.example.com")))
            .with_header("idempotency-key", "order-2"),
        // A repeated request with the idempotency key of the request above: the servers return the stored response.
        subscription_creation_request(&new_subscription_body_with("email", json!("billing@acme.example.com")))
            .with_header("idempotency-key", "order-2"),
        subscription_creation_request(&new_subscription_body_with(
            "product_name",
            json!("Gold plan, order 4242 4242 4242 4241"),
        )),
        subscription_creation_request(&new_subscription_body_with("currency", json!("JPY"))),
        subscription_creation_request(&new_subscription_body_with("payment_day", json!(31))),
        BenchmarkRequest::get(format!("/accounts/{EXISTING_ACCOUNT}/receipts")),
        BenchmarkRequest::get(format!("/accounts/{EXISTING_ACCOUNT}/receipts?limit=5")),
        BenchmarkRequest::get("/accounts/other/subscriptions"),
        subscription_change_request(&json!({ "amount": 1499, "product_name": "Gold plan, new price" }))
            .with_header("if-match", "\"1\""),
        subscription_change_request(&json!({ "email": "billing@acme.example.com" }))
            .with_header("if-match", "\"1\", \"2\""),
        // The stored mail address does not change, so the servers write nothing.
        subscription_change_request(&json!({ "email": "billing@acme.example.com" })).with_header("if-match", "*"),
        subscription_change_request(&json!({ "email": null, "payment_day": 20 })),
        subscription_change_request(&json!({ "payment_method": { "customer": "cus_1", "payment_method": "pm_2" } })),
        subscription_change_request(&json!({})),
        signed_up.clone(),
        signed_up,
        subscription_creation_request(&sign_up_body(3, today)).with_header("idempotency-key", "order-3"),
    ]
}

/// Returns request bodies with which the servers refuse to create a subscription.
fn refused_bodies(today: NaiveDate) -> Vec<Value> {
    let (yesterday, tomorrow) = (today - Days::new(1), today + Days::new(1));
    let mut without_method = new_subscription_body(1);
    without_method.as_object_mut().expect("an object").remove("payment_method");
    let on = |day: NaiveDate| {
        let mut body = sign_up_body(1, day);
        body["charge_now"] = json!(false);
        body
    };
    let mut wrong_day = on(today);
    wrong_day["first_payment_date"] = json!(tomorrow.to_string());
    vec![
        new_subscription_body_with("amount", json!(0)),
        new_subscription_body_with("amount", json!(12.99)),
        new_subscription_body_with("amount", json!("1299")),
        new_subscription_body_with("amount", json!(1_000_000_000_000_i64)),
        new_subscription_body_with("currency", json!("XAU")),
        new_subscription_body_with("currency", json!("eur")),
        new_subscription_body_with("payment_day", json!(32)),
        new_subscription_body_with("payment_day", json!(null)),
        new_subscription_body_with("sku", json!("a b")),
        new_subscription_body_with("sku", json!("-rf")),
        new_subscription_body_with("product_name", json!("")),
        new_subscription_body_with("product_name", json!(" x")),
        new_subscription_body_with("product_name", json!("x".repeat(201))),
        new_subscription_body_with("product_name", json!("a\u{202e}b")),
        new_subscription_body_with("product_name", json!("\u{200b}")),
        new_subscription_body_with("product_name", json!("=?utf-8?q?a?=")),
        new_subscription_body_with("product_name", json!("Visa 4242 4242 4242 4242")),
        new_subscription_body_with("payment_method", json!("pm_card_visa")),
        new_subscription_body_with("payment_method.customer", json!("cus 1")),
        new_subscription_body_with("payment_method.card", json!("x")),
        new_subscription_body_with("payment_method", json!({ "customer": "cus_1" })),
        without_method,
        new_subscription_body_with("email", json!("a@b")),
        new_subscription_body_with("email", json!("A <a@example.com>")),
        new_subscription_body_with("price", json!(1)),
        new_subscription_body_with("charge_now", json!("yes")),
        new_subscription_body_with("first_payment_date", json!("2026-02-30")),
        new_subscription_body_with("first_payment_date", json!("tomorrow")),
        on(yesterday),
        wrong_day,
        on(today + Days::new(4_000)),
        // Sign-ups that lack the required header `Idempotency-Key`.
        sign_up_body(1, today),
        sign_up_body(1, tomorrow),
        json!([]),
    ]
}

/// Returns requests to change a subscription that the servers refuse.
fn refused_changes() -> Vec<BenchmarkRequest> {
    vec![
        subscription_change_request(&json!({ "amount": 1599 })).with_header("if-match", "\"99\""),
        subscription_change_request(&json!({ "amount": 1599 })).with_header("if-match", "99"),
        subscription_change_request(&json!({ "amount": null })),
        subscription_change_request(&json!({ "amount": -1 })),
        subscription_change_request(&json!({ "currency": "USD" })),
        subscription_change_request(&json!({ "payment_method": { "customer": "cus_1" } })),
        subscription_change_request(&json!({ "product_name": "a\nb" })),
        BenchmarkRequest::with_body(
            Method::PATCH,
            format!("{SUBSCRIPTIONS}/01JZXCVBNM0123456789ABCDEG"),
            json!({ "amount": 1 }),
        ),
        BenchmarkRequest::with_body(Method::PATCH, format!("{SUBSCRIPTIONS}/1"), json!({ "amount": 1 })),
    ]
}

/// Returns requests that the servers refuse because of their path, query, headers or size.
fn refused_requests(today: NaiveDate) -> Vec<BenchmarkRequest> {
    let to_account = |account: &str| format!("/accounts/{account}/subscriptions");
    let without_type =
        BenchmarkRequest { headers: Vec::new(), ..subscription_creation_request(&new_subscription_body(1)) };
    vec![
        BenchmarkRequest::with_body(Method::POST, to_account("unknown"), new_subscription_body(1)),
        BenchmarkRequest::with_body(Method::POST, to_account("a%20b"), new_subscription_body(1)),
        BenchmarkRequest::with_body(Method::POST, format!("{SUBSCRIPTIONS}?dry_run=1"), new_subscription_body(1)),
        BenchmarkRequest::with_body(Method::POST, SUBSCRIPTIONS, "nonsense"),
        subscription_creation_request(&new_subscription_body_with("product_name", json!("x".repeat(70_000)))),
        without_type.clone(),
        without_type.with_header("content-type", "text/plain"),
        subscription_creation_request(&new_subscription_body(1)).with_header("idempotency-key", ""),
        subscription_creation_request(&new_subscription_body(1)).with_header("idempotency-key", "x".repeat(256)),
        // Requests with the idempotency keys of earlier requests, but with other bodies.
        subscription_creation_request(&sign_up_body(9, today)).with_header("idempotency-key", "order-1"),
        subscription_creation_request(&new_subscription_body(1)).with_header("idempotency-key", "order-2"),
        BenchmarkRequest::get(to_account("unknown")),
        BenchmarkRequest::get("/accounts/unknown/receipts"),
        BenchmarkRequest::get(format!("{SUBSCRIPTIONS}?limit=0")),
        BenchmarkRequest::get(format!("{SUBSCRIPTIONS}?limit=101")),
        BenchmarkRequest::get(format!("{SUBSCRIPTIONS}?page=2")),
        BenchmarkRequest::get(format!("{SUBSCRIPTIONS}?cursor=UkVDIzE")),
        BenchmarkRequest::get("/nothing"),
    ]
}
