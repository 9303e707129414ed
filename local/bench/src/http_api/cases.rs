//! The requests with which `bench api` checks that all servers respond alike: requests of the five measured kinds, and
//! requests that the servers must refuse.

use chrono::{Days, NaiveDate};
use reqwest::Method;
use serde_json::{Value, json};

use super::request::{Request, new_subscription, sign_up};

/// The account that exists before the first request, with one subscription and its receipts.
pub const EXISTING_ACCOUNT: &str = "acme";
/// The subscription of [`EXISTING_ACCOUNT`].
pub const EXISTING_SUBSCRIPTION: &str = "01JZXCVBNM0123456789ABCDEF";

/// The path of the subscriptions of [`EXISTING_ACCOUNT`].
const SUBSCRIPTIONS: &str = "/accounts/acme/subscriptions";

/// Returns the request that is sent to each server before the compared requests. The request signs a customer up: it
/// creates a subscription and charges its first payment.
pub fn first_sign_up(today: NaiveDate) -> Request {
    create(&sign_up(4, today)).with_header("idempotency-key", "order-4")
}

/// Returns all requests whose responses are compared, in order. `today` is the current date.
pub fn compared_requests(today: NaiveDate) -> Vec<Request> {
    let mut all = accepted_requests(today);
    all.extend(refused_bodies(today).into_iter().map(|body| create(&body)));
    all.extend(refused_changes());
    all.extend(refused_requests(today));
    all
}

/// Returns a request that creates a subscription of [`EXISTING_ACCOUNT`].
fn create(body: &Value) -> Request {
    Request::with_body(Method::POST, SUBSCRIPTIONS, body)
}

/// Returns a request that changes [`EXISTING_SUBSCRIPTION`].
fn change(body: &Value) -> Request {
    Request::with_body(Method::PATCH, format!("{SUBSCRIPTIONS}/{EXISTING_SUBSCRIPTION}"), body)
}

/// Returns the body of a new subscription, in which `value` replaces the field at `path`. The field names in `path` are
/// separated by points.
fn with(path: &str, value: Value) -> Value {
    let mut body = new_subscription(1);
    let field = path.split('.').fold(&mut body, |object, name| &mut object[name]);
    *field = value;
    body
}

/// Returns the requests that the servers accept.
fn accepted_requests(today: NaiveDate) -> Vec<Request> {
    let first_payment = sign_up(2, today);
    let signed_up = create(&first_payment).with_header("idempotency-key", "order-1");
    vec![
        create(&new_subscription(1)),
        create(&with("email", json!("billing@acme.example.com"))).with_header("idempotency-key", "order-2"),
        // A repeated request with the idempotency key of the request above: the servers return the stored response.
        create(&with("email", json!("billing@acme.example.com"))).with_header("idempotency-key", "order-2"),
        create(&with("product_name", json!("Gold plan, order 4242 4242 4242 4241"))),
        create(&with("currency", json!("JPY"))),
        create(&with("payment_day", json!(31))),
        Request::get(format!("/accounts/{EXISTING_ACCOUNT}/receipts")),
        Request::get(format!("/accounts/{EXISTING_ACCOUNT}/receipts?limit=5")),
        Request::get("/accounts/other/subscriptions"),
        change(&json!({ "amount": 1499, "product_name": "Gold plan, new price" })).with_header("if-match", "\"1\""),
        change(&json!({ "email": "billing@acme.example.com" })).with_header("if-match", "\"1\", \"2\""),
        // The stored mail address does not change, so the servers write nothing.
        change(&json!({ "email": "billing@acme.example.com" })).with_header("if-match", "*"),
        change(&json!({ "email": null, "payment_day": 20 })),
        change(&json!({ "payment_method": { "customer": "cus_1", "payment_method": "pm_2" } })),
        change(&json!({})),
        signed_up.clone(),
        signed_up,
        create(&sign_up(3, today)).with_header("idempotency-key", "order-3"),
    ]
}

/// Returns request bodies with which the servers refuse to create a subscription.
fn refused_bodies(today: NaiveDate) -> Vec<Value> {
    let (yesterday, tomorrow) = (today - Days::new(1), today + Days::new(1));
    let mut without_method = new_subscription(1);
    without_method.as_object_mut().expect("an object").remove("payment_method");
    let on = |day: NaiveDate| {
        let mut body = sign_up(1, day);
        body["charge_now"] = json!(false);
        body
    };
    let mut wrong_day = on(today);
    wrong_day["first_payment_date"] = json!(tomorrow.to_string());
    vec![
        with("amount", json!(0)),
        with("amount", json!(12.99)),
        with("amount", json!("1299")),
        with("amount", json!(1_000_000_000_000_i64)),
        with("currency", json!("XAU")),
        with("currency", json!("eur")),
        with("payment_day", json!(32)),
        with("payment_day", json!(null)),
        with("sku", json!("a b")),
        with("sku", json!("-rf")),
        with("product_name", json!("")),
        with("product_name", json!(" x")),
        with("product_name", json!("x".repeat(201))),
        with("product_name", json!("a\u{202e}b")),
        with("product_name", json!("\u{200b}")),
        with("product_name", json!("=?utf-8?q?a?=")),
        with("product_name", json!("Visa 4242 4242 4242 4242")),
        with("payment_method", json!("pm_card_visa")),
        with("payment_method.customer", json!("cus 1")),
        with("payment_method.card", json!("x")),
        with("payment_method", json!({ "customer": "cus_1" })),
        without_method,
        with("email", json!("a@b")),
        with("email", json!("A <a@example.com>")),
        with("price", json!(1)),
        with("charge_now", json!("yes")),
        with("first_payment_date", json!("2026-02-30")),
        with("first_payment_date", json!("tomorrow")),
        on(yesterday),
        wrong_day,
        on(today + Days::new(4_000)),
        // Sign-ups that lack the required header `Idempotency-Key`.
        sign_up(1, today),
        sign_up(1, tomorrow),
        json!([]),
    ]
}

/// Returns requests to change a subscription that the servers refuse.
fn refused_changes() -> Vec<Request> {
    vec![
        change(&json!({ "amount": 1599 })).with_header("if-match", "\"99\""),
        change(&json!({ "amount": 1599 })).with_header("if-match", "99"),
        change(&json!({ "amount": null })),
        change(&json!({ "amount": -1 })),
        change(&json!({ "currency": "USD" })),
        change(&json!({ "payment_method": { "customer": "cus_1" } })),
        change(&json!({ "product_name": "a\nb" })),
        Request::with_body(
            Method::PATCH,
            format!("{SUBSCRIPTIONS}/01JZXCVBNM0123456789ABCDEG"),
            json!({ "amount": 1 }),
        ),
        Request::with_body(Method::PATCH, format!("{SUBSCRIPTIONS}/1"), json!({ "amount": 1 })),
    ]
}

/// Returns requests that the servers refuse because of their path, query, headers or size.
fn refused_requests(today: NaiveDate) -> Vec<Request> {
    let to_account = |account: &str| format!("/accounts/{account}/subscriptions");
    let without_type = Request { headers: Vec::new(), ..create(&new_subscription(1)) };
    vec![
        Request::with_body(Method::POST, to_account("unknown"), new_subscription(1)),
        Request::with_body(Method::POST, to_account("a%20b"), new_subscription(1)),
        Request::with_body(Method::POST, format!("{SUBSCRIPTIONS}?dry_run=1"), new_subscription(1)),
        Request::with_body(Method::POST, SUBSCRIPTIONS, "nonsense"),
        create(&with("product_name", json!("x".repeat(70_000)))),
        without_type.clone(),
        without_type.with_header("content-type", "text/plain"),
        create(&new_subscription(1)).with_header("idempotency-key", ""),
        create(&new_subscription(1)).with_header("idempotency-key", "x".repeat(256)),
        // Requests with the idempotency keys of earlier requests, but with other bodies.
        create(&sign_up(9, today)).with_header("idempotency-key", "order-1"),
        create(&new_subscription(1)).with_header("idempotency-key", "order-2"),
        Request::get(to_account("unknown")),
        Request::get("/accounts/unknown/receipts"),
        Request::get(format!("{SUBSCRIPTIONS}?limit=0")),
        Request::get(format!("{SUBSCRIPTIONS}?limit=101")),
        Request::get(format!("{SUBSCRIPTIONS}?page=2")),
        Request::get(format!("{SUBSCRIPTIONS}?cursor=UkVDIzE")),
        Request::get("/nothing"),
    ]
}
