//! What a sign-up with `charge_now` says of its first payment: to the first request, and to each repetition under the same key.

use std::time::Duration;

use emulator::StripeFault;
use serde_json::{Value, json};

use crate::router::sign_up::{CREATE, new};
use crate::router::world::{Answered, World, acme};

/// Status, `payment`, `decline_code`, and the receipt's due date and amount.
fn said(answered: &Answered) -> Value {
    let body = answered.json();
    let receipt = &body["receipt"];
    let receipt = if receipt.is_null() { json!(null) } else { json!([receipt["due_date"], receipt["amount"]]) };
    json!([answered.status, body["payment"], body["decline_code"], receipt])
}

#[tokio::test]
async fn sign_up_says_whether_its_first_payment_was_paid() {
    for (card, status, expected) in [
        ("pm_card_visa", "active", json!([201, "paid", null, ["2026-03-05", 599]])),
        ("pm_card_chargeDeclinedInsufficientFunds", "past_due", json!([201, "declined", "insufficient_funds", null])),
        // Active, and nothing was paid: a shop that goes by the status would deliver.
        ("pm_none", "active", json!([201, "rejected", "resource_missing", null])),
        ("pm_usBankAccount_success", "active", json!([202, "processing", null, null])),
    ] {
        let world = World::new().await;
        let created = world.keyed(CREATE, "k1", &new(card)).await;
        assert_eq!((said(&created), &created.json()["status"]), (expected.clone(), &status.into()), "{card}");
        let again = world.keyed(CREATE, "k1", &new(card)).await;
        assert_eq!((said(&again), again.header("idempotent-replayed")), (expected, "true"), "{card}: repeated");
        assert_eq!(again.json()["id"], created.json()["id"]);
    }
}

#[tokio::test]
async fn receipt_of_a_sign_up_is_the_one_that_its_route_returns() {
    let world = World::new().await;
    let receipt = world.keyed(CREATE, "k1", &new("pm_card_visa")).await.json()["receipt"].clone();
    let id = receipt["id"].as_str().unwrap();
    assert_eq!(world.ask(&format!("GET /accounts/acme/receipts/{id}"), "").await.json(), receipt);
}

#[tokio::test]
async fn sign_up_that_is_not_charged_says_so() {
    let world = World::new().await;
    world.table.set_charging(false).await.unwrap();
    let off = world.keyed(CREATE, "k1", &new("pm_card_visa")).await;
    assert_eq!(said(&off), json!([202, "not_attempted", null, null]), "{}", off.text);
    world.table.set_charging(true).await.unwrap();
    let later = new("pm_card_visa").replace(r#","charge_now":true"#, "").replace(r#""charge_now":true,"#, "");
    let later = world.keyed(CREATE, "k2", &later).await;
    assert_eq!(said(&later), json!([201, null, null, null]), "it was not to be charged now: {}", later.text);
    assert!(!later.text.contains("\"payment\""), "nothing is said of a payment: {}", later.text);
}

#[tokio::test]
async fn repeated_sign_up_says_what_is_known_by_then() {
    for (card, run, then) in [
        ("pm_card_visa", "2026-03-06T06:00:00Z", json!([201, "paid", null, ["2026-03-05", 599]])),
        (
            "pm_card_visa_chargeDeclinedInsufficientFunds",
            "2026-03-06T06:00:00Z",
            json!([201, "declined", "insufficient_funds", null]),
        ),
    ] {
        let (world, server) = World::over_stripe().await;
        // Stripe says whose account it is, and the response to the charge is lost.
        server.next([None, Some(StripeFault::LostAfter)]);
        let created = world.keyed(CREATE, "k1", &new(card)).await;
        assert_eq!(said(&created), json!([202, "unknown", null, null]), "{card}: {}", created.text);
        let again = world.keyed(CREATE, "k1", &new(card)).await;
        assert_eq!(said(&again), json!([202, "unknown", null, null]), "{card}: nothing more is known");
        world.charge(run).await;
        let settled = world.keyed(CREATE, "k1", &new(card)).await;
        assert_eq!(said(&settled), then, "{card}: {}", settled.text);
        assert_eq!(server.intents().len(), 1, "{card}: it was charged once");
    }
}

#[tokio::test]
async fn debit_is_processing_in_each_response_while_the_bank_works_on_it() {
    let (world, _server) = World::over_stripe().await;
    let body = new("pm_usBankAccount_success");
    for later in ["2026-03-05T12:00:00Z", "2026-03-05T12:10:00Z", "2026-03-07T11:59:00Z"] {
        world.clock.set(crate::router::world::at(later));
        let created = world.keyed(CREATE, "k1", &body).await;
        assert_eq!(said(&created), json!([202, "processing", null, null]), "{later}: {}", created.text);
        if later == "2026-03-05T12:10:00Z" {
            world.charge("2026-03-06T06:00:00Z").await;
        }
    }
}

#[tokio::test]
async fn sign_ups_are_answered_at_once_while_stripe_asks_to_wait_for_an_hour() {
    let (world, server) = World::over_stripe().await;
    server.next([None, Some(StripeFault::RateLimitedFor(3_600))]);
    let at_once = async |key: &str| {
        let sign_up = world.keyed(CREATE, key, &new("pm_card_visa")).await;
        assert_eq!(sign_up.status, 202, "{}", sign_up.text);
        sign_up.json()["payment"].clone()
    };
    let first = tokio::time::timeout(Duration::from_secs(8), at_once("k1")).await.expect("it does not wait");
    let second = tokio::time::timeout(Duration::from_secs(8), at_once("k2")).await.expect("it does not wait");
    assert_eq!((first, second), (json!("unknown"), json!("not_attempted")));
    assert_eq!(server.intents().len(), 0);
}

#[tokio::test]
async fn customer_never_gets_the_reason_of_a_decline() {
    let (world, server) = World::over_stripe().await;
    let created = world.keyed(CREATE, "k1", &new("pm_card_visa_chargeDeclinedLostCard")).await;
    assert_eq!(said(&created), json!([201, "declined", "lost_card", null]), "the merchant gets it");
    let id = created.json()["id"].as_str().unwrap().to_owned();
    let own = format!("/accounts/acme/subscriptions/{id}");
    for request in [format!("GET {own}"), format!("GET {own}/why"), "GET /accounts/acme/subscriptions".to_owned()] {
        let shown = world.send(&acme(), &request, &[], "").await;
        assert_eq!(shown.status, 200, "{request}");
        assert!(!shown.text.contains("lost"), "{request}: {}", shown.text);
    }
    let refused = world.send(&acme(), CREATE, &[("idempotency-key", "k1")], &new("pm_card_visa")).await;
    assert_eq!(refused.status, 403, "only an operator signs up");
    assert_eq!(server.intents().len(), 1);
}

#[tokio::test]
async fn key_of_a_sign_up_names_the_same_subscription_for_48_hours() {
    let world = World::new().await;
    let created = world.keyed(CREATE, "daily", &new("pm_card_visa")).await;
    // The day on which the clocks are set back has 25 hours.
    for (at, is_kept) in
        [("2026-03-06T13:00:00Z", true), ("2026-03-07T11:59:59Z", true), ("2026-03-07T12:00:01Z", false)]
    {
        world.clock.set(crate::router::world::at(at));
        let again = world.keyed(CREATE, "daily", &new("pm_card_visa")).await;
        assert_eq!(again.status == 201, is_kept, "{at}: {}", again.text);
        if is_kept {
            assert_eq!(again.json()["id"], created.json()["id"], "{at}");
        }
    }
    assert_eq!(crate::router::sign_up::charges(&world), 1);
}
