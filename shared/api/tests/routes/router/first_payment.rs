//! Tests of the state of the first payment in the response to a sign-up with `charge_now`, and in the responses to its
//! repetitions under the same idempotency key.

use std::time::Duration;

use emulator::StripeFault;
use serde_json::{Value, json};

use crate::router::sign_up::{CREATE_SUBSCRIPTION, sign_up_with};
use crate::router::world::{TestResponse, World, acme};

/// Returns a JSON list of four values in `response`: the status code, `payment`, `decline_code`, and the due date and
/// amount of the receipt.
fn first_payment_in(response: &TestResponse) -> Value {
    let body = response.json();
    let receipt = &body["receipt"];
    let receipt = if receipt.is_null() { json!(null) } else { json!([receipt["due_date"], receipt["amount"]]) };
    json!([response.status, body["payment"], body["decline_code"], receipt])
}

#[tokio::test]
async fn sign_up_response_contains_the_state_of_the_first_payment() {
    for (card, subscription_status, expected) in [
        ("pm_card_visa", "active", json!([201, "paid", null, ["2026-03-05", 599]])),
        ("pm_card_chargeDeclinedInsufficientFunds", "past_due", json!([201, "declined", "insufficient_funds", null])),
        // The subscription is active although no payment succeeded. A shop must therefore check `payment`, not
        // `status`, before it delivers the goods.
        ("pm_none", "active", json!([201, "rejected", "resource_missing", null])),
        ("pm_usBankAccount_success", "active", json!([202, "processing", null, null])),
    ] {
        let world = World::new().await;
        let created = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with(card)).await;
        assert_eq!(
            (first_payment_in(&created), &created.json()["status"]),
            (expected.clone(), &subscription_status.into()),
            "{card}"
        );
        let again = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with(card)).await;
        assert_eq!(
            (first_payment_in(&again), again.header("idempotent-replayed")),
            (expected, "true"),
            "{card}: repeated"
        );
        assert_eq!(again.json()["id"], created.json()["id"]);
    }
}

#[tokio::test]
async fn receipt_in_a_sign_up_response_equals_the_receipt_of_its_own_route() {
    let world = World::new().await;
    let receipt =
        world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with("pm_card_visa")).await.json()["receipt"]
            .clone();
    let id = receipt["id"].as_str().unwrap();
    assert_eq!(world.request(&format!("GET /accounts/acme/receipts/{id}"), "").await.json(), receipt);
}

#[tokio::test]
async fn sign_up_response_says_that_the_first_payment_was_not_attempted() {
    let world = World::new().await;
    world.table.set_charging(false, None).await.unwrap();
    let off = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with("pm_card_visa")).await;
    assert_eq!(first_payment_in(&off), json!([202, "not_attempted", null, null]), "{}", off.text);
    world.table.set_charging(true, None).await.unwrap();
    let later = sign_up_with("pm_card_visa").replace(r#","charge_now":true"#, "").replace(r#""charge_now":true,"#, "");
    let later = world.request_with_key(CREATE_SUBSCRIPTION, "k2", &later).await;
    assert_eq!(
        first_payment_in(&later),
        json!([201, null, null, null]),
        "the request is without charge_now: {}",
        later.text
    );
    assert!(!later.text.contains("\"payment\""), "the response has no payment: {}", later.text);
}

#[tokio::test]
async fn repeated_sign_up_returns_the_current_state_of_the_first_payment() {
    // The columns are: the card, the time of the next payment run, and the state of the first payment after that run.
    for (card, run, expected) in [
        ("pm_card_visa", "2026-03-06T06:00:00Z", json!([201, "paid", null, ["2026-03-05", 599]])),
        (
            "pm_card_visa_chargeDeclinedInsufficientFunds",
            "2026-03-06T06:00:00Z",
            json!([201, "declined", "insufficient_funds", null]),
        ),
    ] {
        let (world, server) = World::with_stripe().await;
        // The first request to Stripe reads the account and succeeds. The second request to Stripe is the charge, whose
        // response is lost.
        server.set_next_faults([None, Some(StripeFault::LostAfter)]);
        let created = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with(card)).await;
        assert_eq!(first_payment_in(&created), json!([202, "unknown", null, null]), "{card}: {}", created.text);
        let again = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with(card)).await;
        assert_eq!(first_payment_in(&again), json!([202, "unknown", null, null]), "{card}: still unknown");
        world.run_payments(run).await;
        let settled = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with(card)).await;
        assert_eq!(first_payment_in(&settled), expected, "{card}: {}", settled.text);
        assert_eq!(server.intents().len(), 1, "{card}: the customer was charged once");
    }
}

#[tokio::test]
async fn bank_debit_is_processing_in_each_response_until_the_bank_has_settled_it() {
    let (world, _server) = World::with_stripe().await;
    let body = sign_up_with("pm_usBankAccount_success");
    for later in ["2026-03-05T12:00:00Z", "2026-03-05T12:10:00Z", "2026-03-07T11:59:00Z"] {
        world.clock.set(crate::router::world::at(later));
        let created = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &body).await;
        assert_eq!(first_payment_in(&created), json!([202, "processing", null, null]), "{later}: {}", created.text);
        if later == "2026-03-05T12:10:00Z" {
            world.run_payments("2026-03-06T06:00:00Z").await;
        }
    }
}

#[tokio::test]
async fn sign_up_does_not_wait_when_stripe_throttles_requests_for_an_hour() {
    let (world, server) = World::with_stripe().await;
    server.set_next_faults([None, Some(StripeFault::RateLimitedFor(3_600))]);
    let payment_of_sign_up = async |key: &str| {
        let sign_up = world.request_with_key(CREATE_SUBSCRIPTION, key, &sign_up_with("pm_card_visa")).await;
        assert_eq!(sign_up.status, 202, "{}", sign_up.text);
        sign_up.json()["payment"].clone()
    };
    let first = tokio::time::timeout(Duration::from_secs(8), payment_of_sign_up("k1"))
        .await
        .expect("the sign-up does not wait");
    let second = tokio::time::timeout(Duration::from_secs(8), payment_of_sign_up("k2"))
        .await
        .expect("the sign-up does not wait");
    assert_eq!((first, second), (json!("unknown"), json!("not_attempted")));
    assert_eq!(server.intents().len(), 0);
}

#[tokio::test]
async fn customer_never_gets_the_decline_code() {
    let (world, server) = World::with_stripe().await;
    let created =
        world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with("pm_card_visa_chargeDeclinedLostCard")).await;
    assert_eq!(first_payment_in(&created), json!([201, "declined", "lost_card", null]), "the merchant gets the code");
    let id = created.json()["id"].as_str().unwrap().to_owned();
    let own = format!("/accounts/acme/subscriptions/{id}");
    for request in [format!("GET {own}"), format!("GET {own}/why"), "GET /accounts/acme/subscriptions".to_owned()] {
        let response = world.request_as(&acme(), &request, &[], "").await;
        assert_eq!(response.status, 200, "{request}");
        assert!(!response.text.contains("lost"), "{request}: {}", response.text);
    }
    let refused = world
        .request_as(&acme(), CREATE_SUBSCRIPTION, &[("idempotency-key", "k1")], &sign_up_with("pm_card_visa"))
        .await;
    assert_eq!(refused.status, 403, "only an operator may create a subscription");
    assert_eq!(server.intents().len(), 1);
}

#[tokio::test]
async fn idempotency_key_of_a_sign_up_names_the_same_subscription_for_48_hours() {
    let world = World::new().await;
    let created = world.request_with_key(CREATE_SUBSCRIPTION, "daily", &sign_up_with("pm_card_visa")).await;
    // The first repetition is 25 hours after the sign-up: a day on which the clocks are set back has 25 hours, and no
    // day is longer.
    for (at, is_stored) in
        [("2026-03-06T13:00:00Z", true), ("2026-03-07T11:59:59Z", true), ("2026-03-07T12:00:01Z", false)]
    {
        world.clock.set(crate::router::world::at(at));
        let again = world.request_with_key(CREATE_SUBSCRIPTION, "daily", &sign_up_with("pm_card_visa")).await;
        assert_eq!(again.status == 201, is_stored, "{at}: {}", again.text);
        if is_stored {
            assert_eq!(again.json()["id"], created.json()["id"], "{at}");
        }
    }
    assert_eq!(crate::router::sign_up::charge_count(&world), 1);
}
