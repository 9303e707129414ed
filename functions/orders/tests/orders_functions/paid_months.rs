//! Invokes the binary of the function over the Lambda Runtime API: payments become orders, and the schedule fills
//! backordered orders.

use std::sync::Arc;

use clock::{Clock, SystemClock};
use emulator::Engine;
use orders::{BackOrderReason, Country, OrderLine, OrderStatus, PlaceId, Region, ShippingAddress};
use orders_desk::OrderDesk;
use orders_table::{BucketCount, OrdersTable, WriteOutcome};
use serde_json::{Value, json};
use testkit::{InvocationResult, LambdaFunction};

use crate::payments_table;

/// Starts the function with an empty orders table, and with a payments table that contains the receipt of the sample event.
pub async fn start_function() -> (Engine, OrdersTable, LambdaFunction) {
    let engine = Engine::in_memory();
    let table = OrdersTable::new(engine.client(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    payments_table::create(&engine).await;
    payments_table::put(&engine, &payments_table::sample_receipt()).await;
    let function = LambdaFunction::start_on_engine(&engine, env!("CARGO_BIN_EXE_orders"), "orders", &[]).await;
    (engine, table, function)
}

/// Returns the text of the sample event in the file `events/NAME.json`.
pub fn sample_event(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Invokes the function with the payload `event` and a deadline in 60 seconds.
pub async fn invoke(function: &mut LambdaFunction, event: &str) -> InvocationResult {
    function.invoke(event, SystemClock.now().timestamp_millis() + 60_000).await
}

#[tokio::test(flavor = "multi_thread")]
async fn paid_month_gets_one_order_and_the_schedule_fills_it_when_stock_and_address_arrive() {
    let (_engine, table, mut function) = start_function().await;
    let beans: orders::ProductId = "beans".parse().unwrap();
    let line = OrderLine { product: beans.clone(), quantity: 2 };
    let product = orders::Product {
        id: beans.clone(),
        name: "Beans".parse().unwrap(),
        total_stock: 0,
        created_at: SystemClock.now(),
        version: 1,
    };
    assert_eq!(table.create_product(&product).await.unwrap(), WriteOutcome::Done);
    assert_eq!(table.set_lines_of_sku(&"gold".parse().unwrap(), &[line]).await.unwrap(), WriteOutcome::Done);
    let no_failures = InvocationResult::Response(json!({ "batchItemFailures": [] }));
    for _ in 0..2 {
        assert_eq!(invoke(&mut function, &sample_event("sqs-paid")).await, no_failures);
    }
    let id = "2027-01-31.01JNA80W00TQ2XNPH2HZ8S6CKN".parse().unwrap();
    let (order, lines) = table.get_order(id).await.unwrap().unwrap();
    assert_eq!(
        (order.status, order.waits_for, lines.len()),
        (OrderStatus::BackOrdered, Some(BackOrderReason::Address), 1)
    );
    assert_eq!((order.total.to_string().as_str(), order.version), ("12.99 EUR", 1));

    let buckets = table.get_or_store_buckets(BucketCount::default()).await.unwrap();
    let desk = OrderDesk::new(table.clone(), buckets, Arc::new(SystemClock));
    let filled = |count: u32| InvocationResult::Response(json!({ "filled": count, "unfinished_tasks": 0 }));
    assert_eq!(invoke(&mut function, &sample_event("orders-fill")).await, filled(0));
    let warehouse = orders::Warehouse {
        id: "ams".parse().unwrap(),
        name: "Amsterdam".parse().unwrap(),
        region: "eu".parse().unwrap(),
        version: 1,
    };
    assert_eq!(table.create_warehouse(&warehouse).await.unwrap(), WriteOutcome::Done);
    desk.receive_stock(&beans, &warehouse.id, 2, SystemClock.ulid()).await.unwrap();
    assert_eq!(invoke(&mut function, &sample_event("orders-fill")).await, filled(0), "the customer has no address");
    let label = |text: &str| text.parse().unwrap();
    let (region, country) = ("eu".parse::<PlaceId>().unwrap(), "gb".parse().unwrap());
    table.put_entity(&Region { id: region.clone(), name: label("Europe") }).await.unwrap();
    table.put_entity(&Country { id: country, name: label("Britain"), region }).await.unwrap();
    let address = ShippingAddress {
        name: label("Acme"),
        street: label("1 High Street"),
        line2: None,
        postal_code: label("LS1"),
        city: label("Leeds"),
        state: None,
        country: "gb".parse().unwrap(),
        region: "eu".parse().unwrap(),
        phone: None,
    };
    desk.set_shipping_address(&order.customer, address).await.unwrap();
    assert_eq!(invoke(&mut function, &sample_event("orders-fill")).await, filled(1));
    assert_eq!(table.get_order(id).await.unwrap().unwrap().0.status, OrderStatus::Open);
    // The index may not contain the latest change yet. So a fill task is kept until a pass over its orders starts more
    // than 30 seconds after the change that requested the task.
    assert_eq!(table.fill_tasks().await.unwrap().items.len(), 2);
    assert_eq!(invoke(&mut function, &sample_event("orders-fill")).await, filled(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_events_are_ignored_and_unreadable_messages_are_delivered_again() {
    let (_engine, _table, mut function) = start_function().await;
    let mut batch: Value = serde_json::from_str(&sample_event("sqs-paid")).unwrap();
    let paid = batch["Records"][0].clone();
    let message_with = |id: &str, body: &str| {
        let mut message = paid.clone();
        (message["messageId"], message["body"]) = (json!(id), json!(body));
        message
    };
    let created: Value = serde_json::from_str(paid["body"].as_str().unwrap()).unwrap();
    let mut created = created;
    created["type"] = json!("account.created");
    created["data"] = json!({ "account": "acme", "version": 1, "locale": "en", "mail_status": "deliverable" });
    batch["Records"] = json!([message_with("other", &created.to_string()), message_with("none", "nonsense"), paid]);
    for invalid_request in ["{}", r#"{"fill": "everything"}"#] {
        assert!(
            matches!(invoke(&mut function, invalid_request).await, InvocationResult::Error(_)),
            "{invalid_request}"
        );
    }
    let response = invoke(&mut function, &batch.to_string()).await;
    assert_eq!(response, InvocationResult::Response(json!({ "batchItemFailures": [{ "itemIdentifier": "none" }] })));
}
