//! Why a subscription was charged on a day, or was not, as the operator and as the account is told.

use serde_json::{Value, json};

use crate::router::world::{World, acme};

fn told(answer: &Value) -> (&str, bool, bool) {
    let flag = |name: &str| answer[name].as_bool().unwrap();
    (answer["reason"].as_str().unwrap(), flag("charged"), flag("needs_attention"))
}

#[tokio::test]
async fn explain_charge_tells_the_operator_what_the_runs_did_and_not_the_account() {
    let world = World::new().await;
    let today = world.ask("GET {gold}/why", "").await.json();
    assert_eq!((told(&today), &today["date"]), (("not_begun", false, false), &"2026-03-05".into()), "{today}");
    let ahead = world.ask("GET {gold}/why?date=2026-03-10", "").await.json();
    assert_eq!((told(&ahead), &ahead["run"]), (("planned", false, false), &Value::Null), "{ahead}");

    world.table.set_charging(false).await.unwrap();
    world.charge("2026-03-10T06:00:00Z").await;
    let held = world.ask("GET {gold}/why", "").await.json();
    assert_eq!((told(&held), &held["run"]["walked"]), (("held_back", false, true), &"stopped".into()), "{held}");
    assert!(held["answer"].as_str().unwrap().contains("charging is switched off"), "{held}");
    let own = world.send(&acme(), "GET {gold}/why", &[], "").await;
    assert_eq!((told(&own.json()), &own.json()["run"]), (("owed", false, false), &Value::Null), "{}", own.text);
    assert!(!own.text.contains("switched off") && !own.text.contains("shard"), "{}", own.text);

    world.table.set_charging(true).await.unwrap();
    world.charge("2026-03-11T06:00:00Z").await;
    let late = world.ask("GET {gold}/why?date=2026-03-10", "").await.json();
    assert_eq!((told(&late), &late["due_date"]), (("held_back", false, false), &"2026-03-10".into()), "{late}");
    let charged = world.send(&acme(), "GET {gold}/why?date=2026-03-11", &[], "").await.json();
    assert_eq!((told(&charged), &charged["receipts"][0]["amount"]), (("charged", true, false), &1299.into()));
}

#[tokio::test]
async fn explain_charge_tells_an_account_no_codes_and_nobody_any_tokens() {
    let world = World::new().await;
    let mut lost = world.stored().await;
    lost.payment_method.payment_method = "pm_card_visa_chargeDeclinedLostCard".parse().unwrap();
    world.table.update_subscription(&world.gold, &lost).await.unwrap();
    world.charge("2026-03-10T06:00:00Z").await;
    let operator = world.ask("GET {gold}/why", "").await;
    let own = world.send(&acme(), "GET {gold}/why", &[], "").await;
    assert_eq!(told(&own.json()), ("declined", false, false));
    assert_eq!(operator.json()["attempts"][0]["code"], "lost_card");
    assert_eq!(own.json()["attempts"][0]["code"], Value::Null);
    assert!(own.json()["answer"].as_str().unwrap().contains("was declined for good; the subscription is unpaid"));
    assert!(!own.text.contains("lost_card"), "{}", own.text);
    for text in [operator.text, own.text] {
        assert!(!text.contains("pm_card") && !text.contains("cus_1") && !text.contains('@'), "{text}");
    }
}

#[tokio::test]
async fn explain_charge_names_a_payment_that_is_open() {
    let world = World::new().await;
    let mut bank = world.stored().await;
    bank.payment_method.payment_method = "pm_usBankAccount_success".parse().unwrap();
    world.table.update_subscription(&world.gold, &bank).await.unwrap();
    world.charge("2026-03-10T06:00:00Z").await;
    let open = world.ask("GET {gold}/why", "").await.json();
    assert_eq!((told(&open), &open["open_payment"]["amount"]), (("open", false, true), &1299.into()), "{open}");
    let expected =
        json!({"due_date": "2026-03-10", "amount": 1299, "currency": "EUR", "since": "2026-03-10T06:00:00Z"});
    assert_eq!(open["open_payment"], expected);
}
