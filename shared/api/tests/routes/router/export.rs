//! Tests of the export of an account: the document contains everything that is stored about the account, but no token
//! with which a reader could charge its cards.

use api::{AccountExport, ExportError};
use clock::Clock as _;
use rest::Caller;
use serde_json::{Value, json};

use crate::router::world::{World, acme};

#[tokio::test]
async fn export_contains_every_item_of_the_account_and_no_complete_token() {
    let world = World::new().await;
    let method = r#"{"payment_method": {"customer": "cus_0123456789", "payment_method": "pm_card_visa"}}"#;
    assert_eq!(world.request("PATCH {gold}", method).await.status, 200);
    world.run_payments("2026-03-10T06:00:00Z").await;
    let receipts = world.request("GET /accounts/acme/receipts", "").await.json();
    let receipt = receipts["data"][0]["id"].as_str().unwrap().to_owned();
    let refund = format!("POST /accounts/acme/receipts/{receipt}/refund");
    assert_eq!(world.request_with_key(&refund, "1", r#"{"amount": 100}"#).await.status, 201);
    let setup = world.request("POST /accounts/acme/payment-method-setups", "{}").await.json();
    let declined =
        r#"{"payment_method": {"customer": "cus_0123456789", "payment_method": "pm_card_visa_chargeDeclined"}}"#;
    assert_eq!(world.request("PATCH {gold}", declined).await.status, 200);
    world.run_payments("2026-04-10T06:00:00Z").await;

    let exported = world.request_as(&acme(), "GET /accounts/acme/export", &[], "").await;
    let json = exported.json();
    assert_eq!(json["account"]["email"], "billing@acme.example.com", "{json}");
    let ids =
        |list: &str| -> Vec<Value> { json[list].as_array().unwrap().iter().map(|item| item["id"].clone()).collect() };
    assert_eq!(ids("subscriptions"), [json!(world.gold.id.to_string())]);
    assert_eq!(ids("receipts"), [json!(receipt)]);
    assert_eq!(json["refunds"][0]["amount"], 100);
    assert_eq!(json["failed_attempts"][0]["subscription"], world.gold.id.to_string());
    assert_eq!(json["failed_attempts"][0]["outcome"], "declined");
    assert_eq!(ids("payment_method_setups"), [setup["id"].clone()]);
    let kinds: Vec<&Value> = json["actions"].as_array().unwrap().iter().map(|action| &action["action"]).collect();
    assert_eq!(kinds, ["subscription.change", "payment_method_setup.create", "refund.create", "subscription.change"]);
    assert_eq!(json["subscriptions"][0]["payment_method"]["customer"], "...6789");
    for token in ["cus_0123456789", "pm_card_visa_chargeDeclined", setup["url"].as_str().unwrap()] {
        assert!(!exported.text.contains(token), "{token}: {}", exported.text);
    }
}

#[tokio::test]
async fn export_is_refused_for_other_accounts_and_never_cut() {
    let world = World::new().await;
    let other = Caller::account("other".parse().unwrap());
    for (caller, path) in [(&other, "GET /accounts/acme/export"), (&other, "GET /accounts/other/export")] {
        let refused = world.request_as(caller, path, &[], "").await;
        assert_eq!(refused.problem(), "404 not-found -: there is no such account", "{path}");
    }
    let account = "acme".parse().unwrap();
    let read = |max_items| AccountExport::read(&world.table, &account, max_items, world.clock.now());
    assert!(matches!(read(1).await, Err(ExportError::TooManyItems)), "the account and its subscription are two items");
    assert!(matches!(read(2).await, Ok(Some(_))));
}
