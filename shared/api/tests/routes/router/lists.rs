//! Tests of lists that contain stored items which cannot be read.

use aws_sdk_dynamodb::types::AttributeValue;
use testkit::sample_subscription;

use crate::router::world::{World, acme, at};

/// Makes the item of the account `acme` with the sort key `sk` unreadable: sets `attribute` to a value of a wrong type.
async fn corrupt_item(world: &World, sk: &str, attribute: &str) {
    let update = world.table.client().update_item().table_name(world.table.name());
    let update = update.key("PK", AttributeValue::S("ACC#acme".into())).key("SK", AttributeValue::S(sk.into()));
    let update = update.update_expression("SET #it = :wrong").expression_attribute_names("#it", attribute);
    update.expression_attribute_values(":wrong", AttributeValue::Bool(true)).send().await.unwrap();
}

#[tokio::test]
async fn subscription_is_found_by_its_id_in_the_earlier_system() {
    let world = World::new().await;
    let external_id: billing::ExternalId = "order 4711".parse().unwrap();
    let imported = billing::Subscription {
        id: external_id.subscription_id(&world.gold.account),
        external_id: Some(external_id),
        ..world.gold.clone()
    };
    world.table.create_subscription(&imported, None).await.unwrap();
    let list = world.request("GET /accounts/acme/subscriptions?external_id=order%204711", "").await.json();
    let found = list["data"].as_array().unwrap();
    assert_eq!((found.len(), &found[0]["external_id"]), (1, &"order 4711".into()), "{list}");
    let none = world.request("GET /accounts/acme/subscriptions?external_id=4712", "").await.json();
    assert_eq!(none["data"], serde_json::json!([]));
}

#[tokio::test]
async fn list_subscriptions_and_receipts_name_unreadable_items_and_list_the_others() {
    let world = World::new().await;
    let other = sample_subscription(11, at("2026-03-01T00:00:00Z").date_naive());
    world.table.create_subscription(&other, None).await.unwrap();
    world.run_payments("2026-03-10T06:00:00Z").await;
    world.run_payments("2026-03-11T06:00:00Z").await;

    let key = format!("SUB#{}#SKU#{}", world.gold.id, world.gold.sku);
    corrupt_item(&world, &key, "PaymentAmount").await;
    let list = world.request_as(&acme(), "GET /accounts/acme/subscriptions", &[], "").await;
    assert_eq!(list.status, 200, "{}", list.text);
    let list = list.json();
    assert_eq!((list["data"].as_array().unwrap().len(), &list["data"][0]["payment_day"]), (1, &11.into()), "{list}");
    assert_eq!(list["unreadable"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["unreadable"][0]["key"], format!("ACC#acme {key}"));
    assert_eq!(list["unreadable"][0]["reason"], "its attribute PaymentAmount must be a number (N)", "{list}");

    let receipts = world.request("GET /accounts/acme/receipts", "").await.json();
    assert_eq!((receipts["data"].as_array().unwrap().len(), &receipts["unreadable"]), (2, &serde_json::json!([])));
    let key = format!("REC#2026-03-10#SKU#{}#SUB#{}", world.gold.sku, world.gold.id);
    corrupt_item(&world, &key, "ProcessedAmount").await;
    let receipts = world.request("GET /accounts/acme/receipts", "").await;
    assert_eq!(receipts.status, 200, "{}", receipts.text);
    let receipts = receipts.json();
    assert_eq!(receipts["data"][0]["due_date"], "2026-03-11", "{receipts}");
    assert_eq!(receipts["unreadable"][0]["key"], format!("ACC#acme {key}"), "{receipts}");
    // A request for the unreadable item itself fails.
    assert_eq!(world.request("GET {gold}", "").await.status, 500);
}
