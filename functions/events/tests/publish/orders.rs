//! Tests of the second stream of the function: the changes of the orders table.

use std::sync::Arc;

use chrono::DateTime;
use clock::SimulatedClock;
use emulator::Engine;
use orders::{OrderLine, OrderStatus, PaidPeriod, Product};
use orders_desk::OrderDesk;
use orders_table::{BucketCount, OrdersTable};
use serde_json::{Value, json};
use testkit::InvocationResult;

use crate::event_bridge::{FakeBusBehavior, FakeEventBridge};
use crate::lambda::{invoke, start_function};
use crate::world::{publisher, texts};

/// Returns all stream records of a table with an order that was placed and then cancelled, as one Lambda event.
async fn batch() -> Value {
    let engine = Engine::in_memory();
    let table = OrdersTable::new(engine.client(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    let stream = engine.stream("dueday-orders").unwrap();
    let clock = Arc::new(SimulatedClock::new(DateTime::UNIX_EPOCH, 1));
    let desk = OrderDesk::new(table, BucketCount::default(), clock);
    let beans = Product {
        id: "beans".parse().unwrap(),
        name: "Beans".parse().unwrap(),
        total_stock: 0,
        created_at: DateTime::UNIX_EPOCH,
        version: 1,
    };
    desk.table.create_product(&beans).await.unwrap();
    let lines = [OrderLine { product: beans.id, quantity: 2 }];
    desk.table.set_lines_of_sku(&"gold".parse().unwrap(), &lines).await.unwrap();
    let paid = PaidPeriod {
        order: "2027-01-31.01JZXCVBNM0123456789ABCDEF".parse().unwrap(),
        account: "acme".parse().unwrap(),
        sku: "gold".parse().unwrap(),
        amount: billing::Money::new(1_299, "EUR".parse().unwrap()),
        paid_at: "2027-01-31T06:00:02Z".parse().unwrap(),
    };
    desk.place_order(&paid).await.unwrap();
    desk.advance_order(paid.order, OrderStatus::Cancelled).await.unwrap();
    stream.records_after(None, 1_000).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_function_publishes_changes_of_orders_and_of_no_other_items_of_the_orders_table() {
    let bus = FakeEventBridge::start(|_| FakeBusBehavior::Accepts).await;
    let (mut function, batch) = (start_function(&bus).await, batch().await);
    assert_eq!(invoke(&mut function, &batch).await, InvocationResult::Response(json!({ "batchItemFailures": [] })));
    let accepted = bus.accepted();
    assert_eq!(texts(&accepted, "type"), ["order.placed", "order.backordered", "order.cancelled"]);
    for event in &accepted {
        assert_eq!(event["source"], "arn:aws:dynamodb:dynoxide:000000000000:table/dueday-orders");
        assert_eq!((&event["subject"], &event["data"]["account"]), (&json!("acme"), &json!("acme")));
    }
    assert!(bus.accepted_entries().iter().all(|entry| entry["Source"] == "dueday"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_order_is_published_with_its_key_and_without_its_address() {
    let mut batch = batch().await;
    let records = batch["Records"].as_array_mut().unwrap();
    // Two items have this sort key: the order, and an item of the customer with another partition key. Find the order.
    let is_order = |record: &&mut Value| {
        let keys = &record["dynamodb"]["Keys"];
        keys["SK"]["S"] == "CUSTOMER#acme" && keys["PK"]["S"].as_str().unwrap().starts_with("ORDER#")
    };
    let placed = records.iter_mut().find(is_order).unwrap();
    placed["dynamodb"]["NewImage"]["ShippingAddress"] = json!({ "M": { "Street": { "S": "1 Secret Street" } } });
    let bus = FakeEventBridge::start(|_| FakeBusBehavior::Accepts).await;
    let published = publisher(&bus).await.publish(&batch).await.unwrap();
    assert_eq!((published.unreadable, published.first_unpublished), (1, None));
    let accepted = bus.accepted();
    assert_eq!(texts(&accepted, "type"), ["record.unreadable", "order.cancelled"]);
    assert_eq!(accepted[0]["data"]["pk"], "ORDER#2027-01-31.01JZXCVBNM0123456789ABCDEF");
    assert!(!accepted[0].to_string().contains("Secret"), "{:#}", accepted[0]);
}
