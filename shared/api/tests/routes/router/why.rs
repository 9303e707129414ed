//! Tests of the explanations why a subscription was or was not charged, for operators and for accounts.

use serde_json::{Value, json};

use crate::router::world::{World, acme};

/// Returns the fields `reason`, `charged` and `needs_attention` of `explanation`.
fn reason_and_flags(explanation: &Value) -> (&str, bool, bool) {
    let flag = |name: &str| explanation[name].as_bool().unwrap();
    (explanation["reason"].as_str().unwrap(), flag("charged"), flag("needs_attention"))
}

#[tokio::test]
async fn explanation_contains_the_runs_for_the_operator_but_not_for_the_account() {
    let world = World::new().await;
    let today = world.request("GET {gold}/why", "").await.json();
    assert_eq!(
        (reason_and_flags(&today), &today["date"]),
        (("not_begun", false, false), &"2026-03-05".into()),
        "{today}"
    );
    let ahead = world.request("GET {gold}/why?date=2026-03-10", "").await.json();
    assert_eq!((reason_and_flags(&ahead), &ahead["run"]), (("planned", false, false), &Value::Null), "{ahead}");

    world.table.set_charging(false, None).await.unwrap();
    world.run_payments("2026-03-10T06:00:00Z").await;
    let held = world.request("GET {gold}/why", "").await.json();
    assert_eq!(
        (reason_and_flags(&held), &held["run"]["walked"]),
        (("held_back", false, true), &"stopped".into()),
        "{held}"
    );
    assert!(held["answer"].as_str().unwrap().contains("charging is switched off"), "{held}");
    let own = world.request_as(&acme(), "GET {gold}/why", &[], "").await;
    assert_eq!(
        (reason_and_flags(&own.json()), &own.json()["run"]),
        (("owed", false, false), &Value::Null),
        "{}",
        own.text
    );
    assert!(!own.text.contains("switched off") && !own.text.contains("shard"), "{}", own.text);

    world.table.set_charging(true, None).await.unwrap();
    world.run_payments("2026-03-11T06:00:00Z").await;
    let late = world.request("GET {gold}/why?date=2026-03-10", "").await.json();
    assert_eq!(
        (reason_and_flags(&late), &late["due_date"]),
        (("held_back", false, false), &"2026-03-10".into()),
        "{late}"
    );
    let charged = world.request_as(&acme(), "GET {gold}/why?date=2026-03-11", &[], "").await.json();
    assert_eq!(
        (reason_and_flags(&charged), &charged["receipts"][0]["amount"]),
        (("charged", true, false), &1299.into())
    );
}

#[tokio::test]
async fn explanation_contains_codes_only_for_the_operator_and_gateway_tokens_for_no_caller() {
    let world = World::new().await;
    let mut lost = world.stored_gold().await;
    lost.payment_method.payment_method = "pm_card_visa_chargeDeclinedLostCard".parse().unwrap();
    world.table.update_subscription(&world.gold, &lost).await.unwrap();
    world.run_payments("2026-03-10T06:00:00Z").await;
    let operator = world.request("GET {gold}/why", "").await;
    let own = world.request_as(&acme(), "GET {gold}/why", &[], "").await;
    assert_eq!(reason_and_flags(&own.json()), ("declined", false, false));
    assert_eq!(operator.json()["attempts"][0]["code"], "lost_card");
    assert_eq!(own.json()["attempts"][0]["code"], Value::Null);
    assert!(
        own.json()["answer"].as_str().unwrap().contains("was declined permanently; the subscription has been unpaid")
    );
    assert!(!own.text.contains("lost_card"), "{}", own.text);
    for text in [operator.text, own.text] {
        assert!(!text.contains("pm_card") && !text.contains("cus_1") && !text.contains('@'), "{text}");
    }
}

#[tokio::test]
async fn explanation_contains_an_open_payment() {
    let world = World::new().await;
    let mut bank = world.stored_gold().await;
    bank.payment_method.payment_method = "pm_usBankAccount_success".parse().unwrap();
    world.table.update_subscription(&world.gold, &bank).await.unwrap();
    world.run_payments("2026-03-10T06:00:00Z").await;
    let open = world.request("GET {gold}/why", "").await.json();
    assert_eq!(
        (reason_and_flags(&open), &open["open_payment"]["amount"]),
        (("open", false, false), &1299.into()),
        "{open}"
    );
    let expected =
        json!({"due_date": "2026-03-10", "amount": 1299, "currency": "EUR", "since": "2026-03-10T06:00:00Z"});
    assert_eq!(open["open_payment"], expected);
}
