//! The function's binary, fed over the Runtime API: payments become orders, and what waits is looked at again.

use clock::{Clock, SystemClock};
use emulator::Engine;
use orders::{OrderLine, OrderStatus, OrdersTable, WaitsFor, Written};
use serde_json::{Value, json};
use testkit::{Answer, Function};

async fn desk() -> (Engine, OrdersTable, Function) {
    let engine = Engine::memory();
    let table = OrdersTable::new(engine.client(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    let function = Function::on(&engine, env!("CARGO_BIN_EXE_orders"), "orders", &[]).await;
    (engine, table, function)
}

fn sample(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

async fn invoke(function: &mut Function, event: &str) -> Answer {
    function.invoke(event, SystemClock.now().timestamp_millis() + 60_000).await
}

#[tokio::test(flavor = "multi_thread")]
async fn function_orders_what_was_paid_once_and_fills_it_when_it_can() {
    let (_engine, table, mut function) = desk().await;
    let beans: orders::ProductId = "beans".parse().unwrap();
    let line = OrderLine { product: beans.clone(), quantity: 2 };
    let product = orders::Product {
        id: beans.clone(),
        name: "Beans".parse().unwrap(),
        total_stock: 0,
        created_at: SystemClock.now(),
        version: 1,
    };
    assert_eq!(table.create_product(&product).await.unwrap(), Written::Done);
    assert_eq!(table.set_lines(&"gold".parse().unwrap(), &[line]).await.unwrap(), Written::Done);
    let nothing_again = Answer::Response(json!({ "batchItemFailures": [] }));
    for _ in 0..2 {
        assert_eq!(invoke(&mut function, &sample("sqs-paid")).await, nothing_again);
    }
    let id = "2027-01-31.01JNA80W00TQ2XNPH2HZ8S6CKN".parse().unwrap();
    let (order, lines) = table.order(id).await.unwrap().unwrap();
    assert_eq!((order.status, order.waits_for, lines.len()), (OrderStatus::BackOrdered, Some(WaitsFor::Address), 1));
    assert_eq!((order.total.to_string().as_str(), order.version), ("12.99 EUR", 1));

    let looked = invoke(&mut function, &sample("orders-fill")).await;
    assert_eq!(looked, Answer::Response(json!({ "filled": 0, "still_waiting": 1 })));
}

#[tokio::test(flavor = "multi_thread")]
async fn message_that_is_no_payment_is_done_with_and_what_is_no_event_comes_again() {
    let (_engine, _table, mut function) = desk().await;
    let mut batch: Value = serde_json::from_str(&sample("sqs-paid")).unwrap();
    let paid = batch["Records"][0].clone();
    let with = |id: &str, body: &str| {
        let mut message = paid.clone();
        (message["messageId"], message["body"]) = (json!(id), json!(body));
        message
    };
    let created: Value = serde_json::from_str(paid["body"].as_str().unwrap()).unwrap();
    let mut created = created;
    created["type"] = json!("account.created");
    created["data"] = json!({ "account": "acme", "version": 1, "locale": "en", "mail_status": "deliverable" });
    batch["Records"] = json!([with("other", &created.to_string()), with("none", "nonsense"), paid]);
    for no_request in ["{}", r#"{"fill": "everything"}"#] {
        assert!(matches!(invoke(&mut function, no_request).await, Answer::Error(_)), "{no_request}");
    }
    let answer = invoke(&mut function, &batch.to_string()).await;
    assert_eq!(answer, Answer::Response(json!({ "batchItemFailures": [{ "itemIdentifier": "none" }] })));
}
