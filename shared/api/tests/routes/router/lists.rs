//! Lists: pages, and what stands in them.

use aws_sdk_dynamodb::types::AttributeValue;
use testkit::sample;

use crate::router::world::{World, acme, at};

/// Sets `attribute` of the stored item to what no reader can take.
async fn spoil(world: &World, sk: &str, attribute: &str) {
    let update = world.table.client().update_item().table_name(world.table.name());
    let update = update.key("PK", AttributeValue::S("ACC#acme".into())).key("SK", AttributeValue::S(sk.into()));
    let update = update.update_expression("SET #it = :wrong").expression_attribute_names("#it", attribute);
    update.expression_attribute_values(":wrong", AttributeValue::Bool(true)).send().await.unwrap();
}

#[tokio::test]
async fn list_subscriptions_and_receipts_name_what_is_unreadable_and_list_the_others() {
    let world = World::new().await;
    let other = sample::subscription(11, at("2026-03-01T00:00:00Z").date_naive());
    world.table.create_subscription(&other, None).await.unwrap();
    world.charge("2026-03-10T06:00:00Z").await;
    world.charge("2026-03-11T06:00:00Z").await;

    let key = format!("SUB#{}#SKU#{}", world.gold.id, world.gold.sku);
    spoil(&world, &key, "PaymentAmount").await;
    let list = world.send(&acme(), "GET /accounts/acme/subscriptions", &[], "").await;
    assert_eq!(list.status, 200, "{}", list.text);
    let list = list.json();
    assert_eq!((list["data"].as_array().unwrap().len(), &list["data"][0]["payment_day"]), (1, &11.into()), "{list}");
    assert_eq!(list["unreadable"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["unreadable"][0]["key"], format!("ACC#acme {key}"));
    assert_eq!(list["unreadable"][0]["reason"], "its attribute PaymentAmount must be a number (N)", "{list}");

    let receipts = world.ask("GET /accounts/acme/receipts", "").await.json();
    assert_eq!((receipts["data"].as_array().unwrap().len(), &receipts["unreadable"]), (2, &serde_json::json!([])));
    let key = format!("REC#2026-03-10#SKU#{}#SUB#{}", world.gold.sku, world.gold.id);
    spoil(&world, &key, "ProcessedAmount").await;
    let receipts = world.ask("GET /accounts/acme/receipts", "").await;
    assert_eq!(receipts.status, 200, "{}", receipts.text);
    let receipts = receipts.json();
    assert_eq!(receipts["data"][0]["due_date"], "2026-03-11", "{receipts}");
    assert_eq!(receipts["unreadable"][0]["key"], format!("ACC#acme {key}"), "{receipts}");
    // Asked for by itself, it is an error still.
    assert_eq!(world.ask("GET {gold}", "").await.status, 500);
}
