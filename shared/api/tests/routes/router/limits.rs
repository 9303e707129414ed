//! Tests of the hourly limits: for requests of an account, and for requests to the return page of a payment method
//! setup.

use rest::{Caller, Role};

use crate::router::world::{TestResponse, World, acme, at};

/// The request that creates a payment method setup.
const CREATE_SETUP: &str = "POST /accounts/acme/payment-method-setups";

/// Asserts that the request was refused because of an hourly limit, and that the next hour begins in `seconds` seconds.
fn assert_limited(response: &TestResponse, seconds: &str) {
    assert_eq!(response.status, 429, "{}", response.text);
    assert_eq!(response.json()["type"], "urn:dueday:problem:too-many-requests");
    assert_eq!(response.header("retry-after"), seconds);
}

#[tokio::test]
async fn account_opens_at_most_twenty_pages_for_a_card_in_an_hour() {
    let world = World::new().await;
    world.clock.set(at("2026-03-05T12:59:30Z"));
    for _ in 0..20 {
        assert_eq!(world.request_as(&acme(), CREATE_SETUP, &[], "{}").await.status, 201);
    }
    let refused = world.request_as(&acme(), CREATE_SETUP, &[], "{}").await;
    assert_limited(&refused, "30");
    let detail = "at most 20 new pages for a payment method are allowed in an hour; the next hour begins at 13:00 UTC";
    assert_eq!(refused.json()["detail"], detail);
    assert_eq!(
        world.request_as(&Caller::Operator(Role::Admin), CREATE_SETUP, &[], "{}").await.status,
        201,
        "operators have no limit"
    );
    world.clock.set(at("2026-03-05T13:00:00Z"));
    assert_eq!(world.request_as(&acme(), CREATE_SETUP, &[], "{}").await.status, 201, "the next hour has begun");
}

#[tokio::test]
async fn account_retries_at_most_ten_times_in_an_hour_and_a_repeated_request_is_not_counted() {
    let world = World::new().await;
    let headers = [("idempotency-key", "pause-1")];
    let lost = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa_chargeDeclinedLostCard"}}"#;
    assert_eq!(world.request("PATCH {gold}", lost).await.status, 200);
    world.run_payments("2026-03-10T06:00:00Z").await;
    for _ in 0..11 {
        let repeated = world.request_as(&acme(), "POST {gold}/retry", &headers, "{}").await;
        assert_eq!(repeated.status, 200, "{}", repeated.text);
    }
    for _ in 0..9 {
        let response = world.request_as(&acme(), "POST {gold}/retry", &[], "{}").await;
        assert!(matches!(response.status, 200 | 409), "{}", response.text);
    }
    assert_limited(&world.request_as(&acme(), "POST {gold}/retry", &[], "{}").await, "3600");
    let repeated = world.request_as(&acme(), "POST {gold}/retry", &headers, "{}").await;
    assert_eq!(repeated.status, 200, "the stored response");
}

#[tokio::test]
async fn return_page_asks_the_gateway_at_most_sixty_times_in_an_hour() {
    let world = World::new().await;
    let open =
        async || world.request_as(&acme(), CREATE_SETUP, &[], "{}").await.json()["id"].as_str().unwrap().to_owned();
    let (first, second) = (open().await, open().await);
    let back =
        async |id: &str| world.request_without_token(&format!("GET /payment-method-setups/{id}/return"), &[], "").await;
    for _ in 0..60 {
        assert_eq!(back(&first).await.status, 200);
    }
    assert_limited(&back(&first).await, "3600");
    assert_eq!(back(&second).await.status, 200, "another customer's page is not affected");
}
