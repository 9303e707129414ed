//! Tests of first payments at sign-up, which are charged while the customer waits, and of retries that an operator or
//! an account requests.

use std::sync::Arc;

use billing::Subscription;
use clock::SimulatedClock;
use emulator::{EngineConnection, Fault, FaultInjector};
use sandbox::LedgerEntry;
use serde_json::{Value, json};
use testkit::fault_at_call;

use crate::router::world::{TickingClock, World, acme, at};

/// Returns the body of a request that creates a subscription and charges its first payment to `card`. The account may
/// have other subscriptions of the same SKU.
pub fn sign_up_with(card: &str) -> String {
    json!({
        "allow_second": true,
        "sku": "tea", "product_name": "Tea", "payment_day": 5, "amount": 599, "currency": "EUR",
        "payment_method": {"customer": "cus_1", "payment_method": card},
        "first_payment_date": "2026-03-05", "charge_now": true,
    })
    .to_string()
}

/// The request that creates a subscription.
pub const CREATE_SUBSCRIPTION: &str = "POST /accounts/acme/subscriptions";

/// Returns the number of payments that the gateway has received.
pub fn charge_count(world: &World) -> usize {
    world.sandbox.entries().iter().filter(|entry| matches!(entry, LedgerEntry::Payment(_))).count()
}

#[tokio::test]
async fn first_payment_is_charged_before_the_response_and_only_once_that_day() {
    // The columns are: the card, and then three expected values: the status code of the response, the status of the
    // subscription, and the number of receipts.
    for (card, status, subscription_status, receipts) in [
        ("pm_card_visa", 201, "active", 1),
        ("pm_card_chargeDeclinedInsufficientFunds", 201, "past_due", 0),
        ("pm_usBankAccount_success", 202, "active", 0),
    ] {
        let world = World::new().await;
        let created = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with(card)).await;
        assert_eq!(
            (created.status, &created.json()["status"]),
            (status, &subscription_status.into()),
            "{card}: {}",
            created.text
        );
        let list = world.request("GET /accounts/acme/receipts", "").await.json();
        assert_eq!(list["data"].as_array().unwrap().len(), receipts, "{list}");
        let again = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with(card)).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (status, "true"), "{card}");
        assert_eq!(again.json()["id"], created.json()["id"]);
        world.run_payments("2026-03-05T18:00:00Z").await;
        assert_eq!(charge_count(&world), 1, "{card}: no run charges it again on that day");
    }
}

#[tokio::test]
async fn sign_up_just_before_midnight_uses_one_date() {
    let clock = Arc::new(TickingClock(SimulatedClock::new(at("2026-03-05T12:00:00Z"), 1)));
    let world = World::new().await.with_clock(clock.clone()).await;
    for (key, is_charged) in [("k1", false), ("k2", true)] {
        // The API reads the clock once before the request, to decide whether its copy of the policy is too old.
        clock.0.set(at("2026-03-05T23:59:58Z"));
        let body = sign_up_with("pm_card_visa").replace("\"charge_now\":true", &format!("\"charge_now\":{is_charged}"));
        let created = world.request_with_key(CREATE_SUBSCRIPTION, key, &body).await;
        assert_eq!(created.status, 201, "{}", created.text);
        assert_eq!(created.json()["created_at"], "2026-03-05T23:59:59Z");
        assert_eq!(created.json()["payment"], if is_charged { json!("paid") } else { Value::Null });
    }
}

#[tokio::test]
async fn charge_now_requires_a_first_payment_date_of_today_and_a_key() {
    let world = World::new().await;
    let without_key = world.request(CREATE_SUBSCRIPTION, &sign_up_with("pm_card_visa")).await.problem();
    assert!(
        without_key.starts_with("422 refused-field charge_now: charge_now requires an Idempotency-Key"),
        "{without_key}"
    );
    let later = sign_up_with("pm_card_visa").replace("2026-03-05", "2026-04-05");
    let problem = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &later).await.problem();
    assert!(problem.starts_with("422 refused-field charge_now"), "{problem}");
    let without_date = sign_up_with("pm_card_visa").replace(r#""first_payment_date":"2026-03-05","#, "");
    assert_eq!(world.request_with_key(CREATE_SUBSCRIPTION, "k2", &without_date).await.status, 422);
    assert_eq!(charge_count(&world), 0);
    world.table.set_charging(false, None).await.unwrap();
    let off = world.request_with_key(CREATE_SUBSCRIPTION, "k3", &sign_up_with("pm_card_visa")).await;
    assert_eq!((off.status, &off.json()["next_payment_date"]), (202, &"2026-03-05".into()), "{}", off.text);
    assert_eq!(charge_count(&world), 0, "charging is switched off");
}

#[tokio::test]
async fn sign_up_in_a_restored_table_creates_nothing_until_the_table_is_confirmed() {
    let world = World::new().await;
    let id = world.table.dynamodb_id().await.unwrap().unwrap();
    world.table.init_dynamodb_id("the id of the table of the backup").await.unwrap();
    let refused = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with("pm_card_visa")).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    let list = world.request("GET /accounts/acme/subscriptions", "").await.json();
    assert_eq!((list["data"].as_array().unwrap().len(), charge_count(&world)), (1, 0), "only the older one: {list}");
    assert!(!world.table.get_settings().await.unwrap().unwrap().charging);

    assert!(world.table.confirm_copy("the id of the table of the backup", &id, None).await.unwrap());
    world.table.set_charging(true, None).await.unwrap();
    let created = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with("pm_card_visa")).await;
    assert_eq!((created.status, charge_count(&world)), (201, 1), "{}", created.text);
}

#[tokio::test]
async fn sign_up_that_crashes_at_any_call_is_charged_exactly_once() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        let mut calls = 1;
        loop {
            let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(calls, fault))));
            let world =
                World::with_connection(EngineConnection::with_injector(injector.clone()).without_retries()).await;
            let first =
                injector.run(world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with("pm_card_visa"))).await;
            if injector.call_count() < calls {
                assert_eq!(first.map(|first| first.status), Some(201));
                break;
            }
            let case = format!("{fault:?} of call {calls}");
            let again = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with("pm_card_visa")).await;
            assert!([201, 202].contains(&again.status), "{case}: {}", again.text);
            world.run_payments("2026-03-05T18:00:00Z").await;
            world.run_payments("2026-03-06T06:00:00Z").await;
            let list = world.request("GET /accounts/acme/receipts", "").await.json();
            let of_tea = list["data"].as_array().unwrap().iter().filter(|receipt| receipt["sku"] == "tea").count();
            assert_eq!((charge_count(&world), of_tea), (1, 1), "{case}: {list}");
            calls += 1;
        }
        assert!(calls > 6, "{calls} calls");
    }
}

#[tokio::test]
async fn retry_charges_an_owed_payment_at_the_next_run() {
    let world = World::new().await;
    let problem = world.request_as(&acme(), "POST {gold}/retry", &[], "").await.problem();
    assert!(problem.starts_with("409 conflict -: no payment is owed"), "{problem}");
    let decline =
        r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_chargeDeclinedInsufficientFunds"}}"#;
    world.request("PATCH {gold}", decline).await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let declined = world.request("GET {gold}", "").await.json();
    assert_eq!((&declined["status"], &declined["next_payment_date"]), (&"past_due".into(), &"2026-03-11".into()));
    for _ in 0..2 {
        let retried = world.request_as(&acme(), "POST {gold}/retry", &[], "").await;
        assert_eq!((retried.status, &retried.json()["next_payment_date"]), (200, &"2026-03-10".into()));
        assert_eq!(retried.json()["failed_attempts"], 0);
    }
    let before = charge_count(&world);
    world.run_payments("2026-03-10T09:00:00Z").await;
    assert_eq!(charge_count(&world), before + 1);
}

#[tokio::test]
async fn only_an_operator_may_retry_a_disputed_card() {
    let world = World::new().await;
    let disputed = Subscription { disputed_at: Some(at("2026-03-06T00:00:00Z")), ..world.gold.clone() };
    world.table.update_subscription(&world.gold, &disputed).await.unwrap();
    world.run_payments("2026-03-10T06:00:00Z").await;
    let gold = world.request("GET {gold}", "").await.json();
    assert_eq!((&gold["disputed_at"], charge_count(&world)), (&"2026-03-06T00:00:00Z".into(), 0), "{gold}");
    let why = world.request("GET {gold}/why", "").await.json();
    assert_eq!((&why["reason"], &why["charged"]), (&"disputed".into(), &Value::Bool(false)), "{why}");
    assert!(why["answer"].as_str().unwrap().contains("disputed since 2026-03-06"), "{why}");
    let refused = world.request_as(&acme(), "POST {gold}/retry", &[], "").await.problem();
    assert!(refused.starts_with("409 conflict -: the payment method is disputed"), "{refused}");
    let retried = world.request("POST {gold}/retry", "").await.json();
    assert_eq!(retried["disputed_at"], Value::Null);
    world.run_payments("2026-03-10T09:00:00Z").await;
    assert_eq!(charge_count(&world), 1);
}

#[tokio::test]
async fn second_sign_up_for_a_sku_is_refused_until_the_first_is_cancelled() {
    let world = World::new().await;
    let sign_up_with = |card: &str| sign_up_with(card).replace("\"allow_second\":true,", "");
    let first = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with("pm_card_visa")).await;
    assert_eq!(first.status, 201, "{}", first.text);
    // The same sign-up again: without its key, and with another key.
    for key in [None, Some("k2")] {
        let body = sign_up_with("pm_card_visa");
        let body = if key.is_none() { body.replace("\"charge_now\":true", "\"charge_now\":false") } else { body };
        let again = match key {
            None => world.request(CREATE_SUBSCRIPTION, &body).await,
            Some(key) => world.request_with_key(CREATE_SUBSCRIPTION, key, &body).await,
        };
        assert!(again.problem().starts_with("409 already-subscribed sku: the account already has"), "{}", again.text);
        let existing = &again.json()["existing_subscription"];
        assert_eq!((&existing["id"], &existing["status"]), (&first.json()["id"], &"active".into()));
    }
    assert_eq!(charge_count(&world), 1);
    let replayed = world.request_with_key(CREATE_SUBSCRIPTION, "k1", &sign_up_with("pm_card_visa")).await;
    assert_eq!(replayed.json()["id"], first.json()["id"], "the repeated request gets its stored response");

    let allowed = sign_up_with("pm_card_visa").replace("\"charge_now\":true", "\"allow_second\":true");
    assert_eq!(world.request(CREATE_SUBSCRIPTION, &allowed).await.status, 201);
    let id = first.json()["id"].as_str().unwrap().to_owned();
    let other_sku = sign_up_with("pm_card_visa").replace("\"tea\"", "\"coffee\"").replace(",\"charge_now\":true", "");
    let other_sku = other_sku.replace("\"charge_now\":true,", "");
    assert_eq!(world.request(CREATE_SUBSCRIPTION, &other_sku).await.status, 201, "{other_sku}");
    let list = world.request("GET /accounts/acme/subscriptions", "").await.json();
    for subscription in list["data"].as_array().unwrap().iter().filter(|subscription| subscription["sku"] == "tea") {
        let path = format!("POST /accounts/acme/subscriptions/{}/cancel", subscription["id"].as_str().unwrap());
        assert_eq!(world.request(&path, "{}").await.status, 200, "{id}");
    }
    let after_cancel = sign_up_with("pm_card_visa").replace("\"charge_now\":true", "\"charge_now\":false");
    assert_eq!(world.request(CREATE_SUBSCRIPTION, &after_cancel).await.status, 201);
}
