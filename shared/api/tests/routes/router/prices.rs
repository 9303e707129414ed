//! Tests of prices that the payment gateway can never charge.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use chrono::TimeDelta;
use clock::Clock as _;
use emulator::{ServerLimits, serve_http};
use gateways::HttpGateway;
use serde_json::{Value, json};

use crate::router::sign_up::CREATE_SUBSCRIPTION;
use crate::router::world::{NEW_SUBSCRIPTION, World};

/// Returns the body of a request that creates a subscription with this price in minor units.
fn new_subscription(amount: i64, currency: &str) -> String {
    let mut body: Value = serde_json::from_str(NEW_SUBSCRIPTION).unwrap();
    (body["amount"], body["currency"]) = (amount.into(), currency.into());
    body["allow_second"] = true.into();
    body.to_string()
}

/// Returns the number of subscriptions of the account `acme`.
async fn subscription_count(world: &World) -> usize {
    let list = world.request("GET /accounts/acme/subscriptions", "").await.json();
    list["data"].as_array().unwrap().len()
}

/// The prices that Stripe can never charge, and the end of the problem.
const REFUSED_BY_STRIPE: [(i64, &str, &str); 5] = [
    (
        57_505,
        "KWD",
        "amount: must be a multiple of 0.010 KWD, because Stripe accepts no other amounts in KWD; for example 57.510 KWD: \
         57510 in minor units",
    ),
    (1_005, "IQD", "currency: must be in a currency that Stripe accepts; Stripe does not accept IQD"),
    (10, "USD", "amount: must be at least 0.50 USD, the smallest amount in USD that Stripe accepts: 50 in minor units"),
    (
        100_000_000,
        "USD",
        "amount: must be at most 999999.99 USD, the largest amount in USD that Stripe accepts: 99999999 in minor units",
    ),
    (
        1_000_000,
        "ISK",
        "amount: must be at most 999999 ISK, the largest amount in ISK that Stripe accepts: 999999 in minor units",
    ),
];

#[tokio::test]
async fn sign_up_with_a_price_that_stripe_can_never_charge_is_refused() {
    let (with_key, _server) = World::with_stripe().await;
    let without_key = World::new().await.with_stripe_without_key().await;
    for world in [with_key, without_key] {
        for (amount, currency, problem) in REFUSED_BY_STRIPE {
            let refused = world.request(CREATE_SUBSCRIPTION, &new_subscription(amount, currency)).await;
            assert_eq!(refused.problem(), format!("422 refused-field {problem}"));
        }
        assert_eq!(subscription_count(&world).await, 1, "only the subscription that existed before");
        for (amount, currency) in [(57_510, "KWD"), (50, "USD"), (99_999_999, "USD"), (999_999, "ISK")] {
            let created = world.request(CREATE_SUBSCRIPTION, &new_subscription(amount, currency)).await;
            assert_eq!(created.status, 201, "{amount} {currency}: {}", created.text);
        }
    }
}

#[tokio::test]
async fn change_to_a_price_that_stripe_can_never_charge_is_refused() {
    let (world, _server) = World::with_stripe().await;
    for (amount, problem) in [
        (
            49,
            "422 refused-field amount: must be at least 0.50 EUR, the smallest amount in EUR that Stripe accepts: 50 in minor units",
        ),
        (
            100_000_000,
            "422 refused-field amount: must be at most 999999.99 EUR, the largest amount in EUR that Stripe accepts: 99999999 in \
             minor units",
        ),
    ] {
        let refused = world.request("PATCH {gold}", &json!({ "amount": amount }).to_string()).await;
        assert_eq!(refused.problem(), problem);
    }
    assert_eq!(world.stored_gold().await, world.gold, "nothing is changed");
    let changed = world.request("PATCH {gold}", r#"{"amount":50}"#).await;
    assert_eq!((changed.status, &changed.json()["amount"]), (200, &50.into()), "{}", changed.text);
}

#[tokio::test]
async fn price_in_a_currency_that_stripe_does_not_accept_is_refused_for_an_existing_subscription() {
    let created = World::new().await;
    let stored = created.request(CREATE_SUBSCRIPTION, &new_subscription(1_005, "IQD")).await;
    assert_eq!(stored.status, 201, "the sandbox accepts every amount: {}", stored.text);
    let id = stored.json()["id"].as_str().unwrap().to_owned();
    let world = created.with_stripe_without_key().await;
    let path = format!("/accounts/acme/subscriptions/{id}");
    let refused = world.request(&format!("PATCH {path}"), r#"{"amount":2000}"#).await;
    let problem = "422 refused-field amount: must be in a currency that Stripe accepts; Stripe does not accept IQD";
    assert_eq!(refused.problem(), problem);
    let renamed = world.request(&format!("PATCH {path}"), r#"{"product_name":"Silver II"}"#).await;
    assert_eq!(renamed.status, 200, "other fields can be changed: {}", renamed.text);
}

#[tokio::test]
async fn amounts_of_a_merchants_own_gateway_are_read_once_and_until_then_every_price_is_accepted() {
    // The number of requests to the account route. The first request has no usable response.
    let requests = Arc::new(AtomicU32::new(0));
    let counted = requests.clone();
    let account = move || async move {
        match counted.fetch_add(1, Ordering::SeqCst) {
            0 => Err(StatusCode::INTERNAL_SERVER_ERROR),
            _ => Ok(Json(json!({
                "Account": "main", "Kind": "acme", "Live": false,
                "AmountRules": {"EUR": {"Smallest": 100, "Step": 5}},
            }))),
        }
    };
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, Router::new().route("/v1/account", get(account)), ServerLimits::default()));
    let gateway = Arc::new(HttpGateway::new(&url, Duration::from_secs(5)));
    let world = World::new().await.with_gateway(gateway).await;
    for expected_requests in [1, 1] {
        let accepted = world.request(CREATE_SUBSCRIPTION, &new_subscription(1, "EUR")).await;
        assert_eq!(accepted.status, 201, "the gateway did not respond: {}", accepted.text);
        assert_eq!(requests.load(Ordering::SeqCst), expected_requests, "it is not asked again at once");
    }
    world.clock.set(world.clock.now() + TimeDelta::minutes(1));
    for (amount, problem) in [
        (
            1,
            "must be at least 1.00 EUR, the smallest amount in EUR that the payment gateway accepts: 100 in minor units",
        ),
        (
            101,
            "must be a multiple of 0.05 EUR, because the payment gateway accepts no other amounts in EUR; for example 1.05 EUR: \
             105 in minor units",
        ),
    ] {
        let refused = world.request(CREATE_SUBSCRIPTION, &new_subscription(amount, "EUR")).await;
        assert_eq!(refused.problem(), format!("422 refused-field amount: {problem}"));
    }
    assert_eq!(requests.load(Ordering::SeqCst), 2, "the amounts are read once");
}
