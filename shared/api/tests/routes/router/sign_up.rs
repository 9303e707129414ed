//! What is paid while somebody waits, and what is tried again because somebody says so.

use std::sync::Arc;

use billing::Subscription;
use clock::SimulatedClock;
use emulator::{Fault, Injector, Wire};
use gateways::Entry;
use serde_json::{Value, json};
use testkit::nth;

use crate::router::world::{TickingClock, World, acme, at};

pub fn new(card: &str) -> String {
    json!({
        "sku": "tea", "product_name": "Tea", "payment_day": 5, "amount": 599, "currency": "EUR",
        "payment_method": {"customer": "cus_1", "payment_method": card},
        "first_payment_date": "2026-03-05", "charge_now": true,
    })
    .to_string()
}

pub const CREATE: &str = "POST /accounts/acme/subscriptions";

pub fn charges(world: &World) -> usize {
    world.sandbox.entries().iter().filter(|entry| matches!(entry, Entry::Payment(_))).count()
}

#[tokio::test]
async fn first_payment_is_charged_before_the_answer_and_says_what_has_come_of_it() {
    for (card, status, becomes, receipts) in [
        ("pm_card_visa", 201, "active", 1),
        ("pm_card_chargeDeclinedInsufficientFunds", 201, "past_due", 0),
        ("pm_usBankAccount_success", 202, "active", 0),
    ] {
        let world = World::new().await;
        let created = world.keyed(CREATE, "k1", &new(card)).await;
        assert_eq!((created.status, &created.json()["status"]), (status, &becomes.into()), "{card}: {}", created.text);
        let list = world.ask("GET /accounts/acme/receipts", "").await.json();
        assert_eq!(list["data"].as_array().unwrap().len(), receipts, "{list}");
        let again = world.keyed(CREATE, "k1", &new(card)).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (status, "true"), "{card}");
        assert_eq!(again.json()["id"], created.json()["id"]);
        world.charge("2026-03-05T18:00:00Z").await;
        assert_eq!(charges(&world), 1, "{card}: no run charges it again on that day");
    }
}

#[tokio::test]
async fn a_sign_up_just_before_midnight_is_of_one_day() {
    let clock = Arc::new(TickingClock(SimulatedClock::new(at("2026-03-05T12:00:00Z"), 1)));
    let world = World::new().await.read_by(clock.clone()).await;
    for (key, is_charged) in [("k1", false), ("k2", true)] {
        clock.0.set(at("2026-03-05T23:59:59Z"));
        let body = new("pm_card_visa").replace("\"charge_now\":true", &format!("\"charge_now\":{is_charged}"));
        let created = world.keyed(CREATE, key, &body).await;
        assert_eq!(created.status, 201, "{}", created.text);
        assert_eq!(created.json()["created_at"], "2026-03-05T23:59:59Z");
        assert_eq!(created.json()["payment"], if is_charged { json!("paid") } else { Value::Null });
    }
}

#[tokio::test]
async fn only_a_first_payment_of_today_is_charged_now() {
    let world = World::new().await;
    let unkeyed = world.ask(CREATE, &new("pm_card_visa")).await.problem();
    assert!(unkeyed.starts_with("422 refused-field charge_now: needs an Idempotency-Key"), "{unkeyed}");
    let later = new("pm_card_visa").replace("2026-03-05", "2026-04-05");
    let problem = world.keyed(CREATE, "k1", &later).await.problem();
    assert!(problem.starts_with("422 refused-field charge_now"), "{problem}");
    let unnamed = new("pm_card_visa").replace(r#""first_payment_date":"2026-03-05","#, "");
    assert_eq!(world.keyed(CREATE, "k2", &unnamed).await.status, 422);
    assert_eq!(charges(&world), 0);
    world.table.set_charging(false).await.unwrap();
    let off = world.keyed(CREATE, "k3", &new("pm_card_visa")).await;
    assert_eq!((off.status, &off.json()["next_payment_date"]), (202, &"2026-03-05".into()), "{}", off.text);
    assert_eq!(charges(&world), 0, "the kill switch is off");
}

#[tokio::test]
async fn crash_at_any_call_charges_once_and_the_next_run_makes_it_good() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        let mut calls = 1;
        loop {
            let injector = Arc::new(Injector::for_runs(Arc::new(nth(calls, fault))));
            let world = World::over(Wire::through(injector.clone()).and_no_retries()).await;
            let first = injector.run(world.keyed(CREATE, "k1", &new("pm_card_visa"))).await;
            if injector.calls() < calls {
                assert_eq!(first.map(|first| first.status), Some(201));
                break;
            }
            let story = format!("{fault:?} of call {calls}");
            let again = world.keyed(CREATE, "k1", &new("pm_card_visa")).await;
            assert!([201, 202].contains(&again.status), "{story}: {}", again.text);
            world.charge("2026-03-05T18:00:00Z").await;
            world.charge("2026-03-06T06:00:00Z").await;
            let list = world.ask("GET /accounts/acme/receipts", "").await.json();
            let of_tea = list["data"].as_array().unwrap().iter().filter(|receipt| receipt["sku"] == "tea").count();
            assert_eq!((charges(&world), of_tea), (1, 1), "{story}: {list}");
            calls += 1;
        }
        assert!(calls > 6, "{calls} calls");
    }
}

#[tokio::test]
async fn what_is_owed_is_tried_again_at_the_next_run() {
    let world = World::new().await;
    let nothing = world.send(&acme(), "POST {gold}/retry", &[], "").await.problem();
    assert!(nothing.starts_with("409 conflict -: nothing is owed"), "{nothing}");
    let decline =
        r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_chargeDeclinedInsufficientFunds"}}"#;
    world.ask("PATCH {gold}", decline).await;
    world.charge("2026-03-10T06:00:00Z").await;
    let declined = world.ask("GET {gold}", "").await.json();
    assert_eq!((&declined["status"], &declined["next_payment_date"]), (&"past_due".into(), &"2026-03-11".into()));
    for _ in 0..2 {
        let retried = world.send(&acme(), "POST {gold}/retry", &[], "").await;
        assert_eq!((retried.status, &retried.json()["next_payment_date"]), (200, &"2026-03-10".into()));
        assert_eq!(retried.json()["failed_attempts"], 0);
    }
    let before = charges(&world);
    world.charge("2026-03-10T09:00:00Z").await;
    assert_eq!(charges(&world), before + 1);
}

#[tokio::test]
async fn disputed_card_is_retried_by_an_operator_alone() {
    let world = World::new().await;
    let disputed = Subscription { disputed_at: Some(at("2026-03-06T00:00:00Z")), ..world.gold.clone() };
    world.table.update_subscription(&world.gold, &disputed).await.unwrap();
    world.charge("2026-03-10T06:00:00Z").await;
    let shown = world.ask("GET {gold}", "").await.json();
    assert_eq!((&shown["disputed_at"], charges(&world)), (&"2026-03-06T00:00:00Z".into(), 0), "{shown}");
    let why = world.ask("GET {gold}/why", "").await.json();
    assert_eq!((&why["reason"], &why["charged"]), (&"disputed".into(), &Value::Bool(false)), "{why}");
    assert!(why["answer"].as_str().unwrap().contains("disputed since 2026-03-06"), "{why}");
    let refused = world.send(&acme(), "POST {gold}/retry", &[], "").await.problem();
    assert!(refused.starts_with("409 conflict -: its payment method is disputed"), "{refused}");
    let retried = world.ask("POST {gold}/retry", "").await.json();
    assert_eq!(retried["disputed_at"], Value::Null);
    world.charge("2026-03-10T09:00:00Z").await;
    assert_eq!(charges(&world), 1);
}
