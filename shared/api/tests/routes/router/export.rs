//! Tests of the export of an account: the document contains everything that is stored about the account, but no token
//! with which a reader could charge its cards.

use std::collections::BTreeSet;

use api::{AccountExport, ExportError};
use billing::{ActionKind, Actor, Dispute, DisputeStatus, Finding, FindingReason, LoggedAction, NewAction};
use clock::Clock as _;
use rest::Caller;
use serde_json::{Value, json};
use store::{CardLink, Paging};
use ulid::Ulid;

use crate::router::world::{World, acme};

/// The documentation page that lists all kinds of items in the table.
const TABLE_PAGE: &str = include_str!("../../../../../docs/table.md");

/// The kinds of items that the export contains, each with the field of the document. A kind is the beginning of a key:
/// of the sort key for items in the partition of an account, and of the partition key for all other items.
const EXPORTED: [(&str, &str); 13] = [
    ("ACC#", "account"),
    ("SUB#", "subscriptions"),
    ("REC#", "receipts"),
    ("RFD#", "refunds"),
    ("DSP#", "disputes"),
    ("FND#", "payments_without_receipt"),
    ("ATT#", "failed_attempts"),
    ("WAV#", "waived_months"),
    ("ACTION#", "actions"),
    ("ACTIONS#ACC#", "actions"),
    ("SETUP#", "payment_method_setups"),
    ("ERASURES", "erasure"),
    ("FINDINGS", "payments_without_receipt"),
];

/// The kinds of items that the export does not contain, each with the reason. The subject of each reason is the item.
const NOT_EXPORTED: [(&str, &str); 20] = [
    ("CODE#", "is computed from the id of the subscription"),
    ("IDEM#", "contains a copy of a subscription for 48 hours"),
    ("RUN#", "concerns all accounts"),
    ("RUN#payments#", "concerns all accounts"),
    ("CTL#execution#", "concerns no account"),
    ("CTL#heartbeat", "concerns no account"),
    ("CTL#settings", "concerns no account"),
    ("CARDLINK#", "is a secret of the mail that contains the link"),
    ("LIMIT#", "is a counter for two hours"),
    ("REFUNDED#support#", "concerns all accounts"),
    ("NOTICE#", "does not name the account"),
    ("TOLD#stripe:", "does not name the account"),
    ("WEBHOOKS", "concerns no account"),
    ("WEBHOOK#", "contains copies of events for 30 days"),
    ("WAITING#", "does not name the account"),
    ("AUDITS", "concerns no account"),
    ("AUDIT#", "names items of the table for 90 days"),
    ("RECONCILED", "names payments of the day for 400 days"),
    ("RECONCILED#", "names payments of the day for 400 days"),
    ("ACTIONS#", "concerns no account"),
];

/// Returns the kinds in the table "Items" of docs/table.md.
fn documented_kinds() -> BTreeSet<String> {
    let rows = TABLE_PAGE.split("## Items").nth(1).unwrap().lines().filter(|line| line.starts_with("| "));
    let keys = rows.filter_map(|row| {
        let texts: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let key = match texts.as_slice() {
            ["ACC#<account>", sk, ..] => sk,
            [pk, ..] => pk,
            [] => return None,
        };
        Some(key.split('<').next().unwrap().to_owned())
    });
    keys.take_while(|key| key != "Shard").collect()
}

#[tokio::test]
async fn export_contains_every_item_of_the_account_and_no_complete_token() {
    let world = World::new().await;
    let method = r#"{"payment_method": {"customer": "cus_0123456789", "payment_method": "pm_card_visa"}}"#;
    assert_eq!(world.request("PATCH {gold}", method).await.status, 200);
    world.run_payments("2026-03-10T06:00:00Z").await;
    let receipts = world.request("GET /accounts/acme/receipts", "").await.json();
    let receipt = receipts["data"][0]["id"].as_str().unwrap().to_owned();
    let refund = format!("POST /accounts/acme/receipts/{receipt}/refund");
    assert_eq!(world.request_with_key(&refund, "1", r#"{"amount": 100, "reason": "late"}"#).await.status, 201);
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
    let other = Caller::of_account("other".parse().unwrap());
    for (caller, path) in [(&other, "GET /accounts/acme/export"), (&other, "GET /accounts/other/export")] {
        let refused = world.request_as(caller, path, &[], "").await;
        assert_eq!(refused.problem(), "404 not-found -: there is no such account", "{path}");
    }
    let account = "acme".parse().unwrap();
    let read = |max_items| AccountExport::read(&world.table, &account, max_items, world.clock.now());
    assert!(matches!(read(1).await, Err(ExportError::TooManyItems)), "the account and its subscription are two items");
    assert!(matches!(read(2).await, Ok(Some(_))));
}

#[test]
fn every_documented_kind_of_item_is_exported_or_has_a_reason_not_to_be() {
    let listed: BTreeSet<String> = EXPORTED.iter().chain(&NOT_EXPORTED).map(|(kind, _)| (*kind).to_owned()).collect();
    assert_eq!(documented_kinds(), listed, "left: the kinds in docs/table.md; right: those of this test");
}

#[tokio::test]
async fn every_item_that_names_the_account_is_in_the_export_or_of_a_kind_that_is_left_out() {
    let world = World::new().await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let receipts = world.table.get_receipts_by_account(&world.gold.account, &Paging::all(), world.clock.now()).await;
    let receipt = receipts.unwrap().items.remove(0);
    let refund = format!("POST /accounts/acme/receipts/{}/refund", receipt.id());
    assert_eq!(world.request_with_key(&refund, "1", r#"{"amount": 100, "reason": "late"}"#).await.status, 201);
    let dispute = Dispute {
        id: "dp_1".parse().unwrap(),
        account: receipt.account.clone(),
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        payment_method: "pm_other".parse().unwrap(),
        amount: receipt.amount,
        reason: "fraudulent".to_owned(),
        status: DisputeStatus::Inquiry,
        opened_at: world.clock.now(),
        closed_at: None,
        version: 1,
    };
    world.table.write_dispute(&dispute, None).await.unwrap();
    let now = world.clock.now();
    let finding = |stored: &billing::Subscription| Finding {
        account: stored.account.clone(),
        subscription: stored.id,
        sku: stored.sku.clone(),
        due_on: receipt.due_on,
        payment: "pi_twice".parse().unwrap(),
        amount: receipt.amount,
        reason: FindingReason::PaidTwice,
        blocks: false,
        found_at: now,
        resolved: None,
        version: 1,
    };
    world.table.put_finding(world.stored_gold().await, finding).await.unwrap();
    let declined = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa_chargeDeclined"}}"#;
    assert_eq!(world.request("PATCH {gold}", declined).await.status, 200);
    world.run_payments("2026-04-10T06:00:00Z").await;
    let setup = world.request_as(&acme(), "POST /accounts/acme/payment-method-setups", &[], "{}").await;
    assert_eq!(setup.status, 201, "{}", setup.text);
    let gold = world.stored_gold().await;
    let link = CardLink { account: gold.account, subscription: gold.id, due_on: gold.due_on };
    world.table.put_card_link(Ulid(77), &link, world.clock.now()).await.unwrap();
    let action = NewAction { at: now, actor: Actor::Operator(None), kind: ActionKind::ChangeOrder, reason: None };
    let entry = LoggedAction { account: Some(receipt.account.clone()), ..action.on_job([("order", 1)]) };
    world.table.put_action(&entry).await.unwrap();
    // The cancellation waives the owed month, so that the table also contains a waived month.
    assert_eq!(world.request_with_key("POST {gold}/cancel", "c", "{}").await.status, 200);

    let json = world.request("GET /accounts/acme/export", "").await.json();
    let mut found = BTreeSet::new();
    for item in world.table.scan().await.unwrap() {
        let key = |name: &str| item[name].as_s().unwrap().clone();
        if format!("{item:?}").contains("acme") {
            found.insert(if key("PK") == "ACC#acme" { key("SK") } else { key("PK") });
        }
    }
    let is_of = |key: &str, kind: &str| key.starts_with(kind);
    for key in &found {
        let is_listed = EXPORTED.iter().chain(&NOT_EXPORTED).any(|(kind, _)| is_of(key, kind));
        assert!(is_listed, "{key} is not in the lists of this test");
    }
    for (kind, field) in EXPORTED.iter().filter(|(kind, _)| *kind != "ERASURES") {
        assert!(found.iter().any(|key| is_of(key, kind)), "the test stores no {kind}: {found:?}");
        let is_exported = json[field].as_array().map_or(json[field].is_object(), |list| !list.is_empty());
        assert!(is_exported, "{kind} is not in {field}: {json}");
    }
}

#[tokio::test]
async fn requested_erasure_is_in_the_export() {
    let world = World::new().await;
    assert_eq!(world.request("GET /accounts/acme/export", "").await.json()["erasure"], Value::Null);
    world.cancel_subscriptions().await;
    assert_eq!(world.request("DELETE /accounts/acme", "").await.status, 202);
    let exported = world.request("GET /accounts/acme/export", "").await.json();
    let requested_at = serde_json::to_value(world.clock.now()).unwrap();
    assert_eq!(exported["erasure"], json!({"requested_at": requested_at, "erased_at": null}));
}
