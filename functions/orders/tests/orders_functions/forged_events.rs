//! Tests with forged events: the function places no order for a payment without a receipt, and cancels no order for a refund that
//! was not made.

use clock::{Clock as _, SystemClock};
use emulator::Engine;
use orders::{OrderLine, OrderStatus};
use orders_table::{OrdersTable, WriteOutcome};
use serde_json::{Value, json};
use testkit::{InvocationResult, LambdaFunction};

use crate::paid_months::{invoke, sample_event, start_function};
use crate::payments_table::{delete, put, refund_of, sample_receipt};

/// The id of the order of the sample event.
const ORDER: &str = "2027-01-31.01JNA80W00TQ2XNPH2HZ8S6CKN";

/// Starts the function. The SKUs `gold` and `silver` have products.
async fn start_with_products() -> (Engine, OrdersTable, LambdaFunction) {
    let (engine, table, function) = start_function().await;
    let beans: orders::ProductId = "beans".parse().unwrap();
    let product = orders::Product {
        id: beans.clone(),
        name: "Beans".parse().unwrap(),
        total_stock: 0,
        created_at: SystemClock.now(),
        version: 1,
    };
    assert_eq!(table.create_product(&product).await.unwrap(), WriteOutcome::Done);
    for sku in ["gold", "silver"] {
        let lines = [OrderLine { product: beans.clone(), quantity: 1 }];
        assert_eq!(table.set_lines_of_sku(&sku.parse().unwrap(), &lines).await.unwrap(), WriteOutcome::Done);
    }
    (engine, table, function)
}

/// Sends the event of `events/sqs-paid.json`, changed by `change`. Returns whether the function refused it.
async fn is_refused(function: &mut LambdaFunction, change: impl FnOnce(&mut Value)) -> bool {
    let mut batch: Value = serde_json::from_str(&sample_event("sqs-paid")).unwrap();
    let mut event: Value = serde_json::from_str(batch["Records"][0]["body"].as_str().unwrap()).unwrap();
    change(&mut event);
    batch["Records"][0]["body"] = json!(event.to_string());
    let InvocationResult::Response(response) = invoke(function, &batch.to_string()).await else { panic!("{event}") };
    !response["batchItemFailures"].as_array().unwrap().is_empty()
}

/// Returns the status of the order of the sample event; `None` if there is no such order.
async fn order_status(table: &OrdersTable) -> Option<OrderStatus> {
    table.get_order(ORDER.parse().unwrap()).await.unwrap().map(|(order, _)| order.status)
}

/// Changes `event` into an event about the refund `refund` of `minor` cents.
fn set_refund(event: &mut Value, refund: &str, minor: i64) {
    event["type"] = json!("payment.refunded");
    (event["data"]["refund"], event["data"]["amount"]) = (json!(refund), json!(minor));
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_without_a_receipt_creates_no_order_and_stays_in_the_queue() {
    let (engine, table, mut function) = start_with_products().await;
    for (field, value) in [
        ("account", json!("other")),
        ("subscription", json!("01JNA80W00TQ2XNPH2HZ8S6CKP")),
        ("due_on", json!("2027-02-28")),
        ("sku", json!("silver")),
        ("amount", json!(1)),
        ("currency", json!("USD")),
    ] {
        assert!(is_refused(&mut function, |event| event["data"][field] = value).await, "{field}");
    }
    for id in [ORDER, "2027-01-31.01JNA80W00TQ2XNPH2HZ8S6CKP", "2027-02-28.01JNA80W00TQ2XNPH2HZ8S6CKN"] {
        assert_eq!(table.get_order(id.parse().unwrap()).await.unwrap(), None, "{id}");
    }
    assert!(!is_refused(&mut function, |_| ()).await);
    assert_eq!(order_status(&table).await, Some(OrderStatus::BackOrdered));
    // An event that is sent again after its receipt has expired changes nothing.
    delete(&engine, &sample_receipt()).await;
    assert!(!is_refused(&mut function, |_| ()).await);
    // The order of another account does not make a forged event true.
    assert!(is_refused(&mut function, |event| event["data"]["account"] = json!("other")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_that_was_not_made_cancels_no_order_and_stays_in_the_queue() {
    let (engine, table, mut function) = start_with_products().await;
    assert!(!is_refused(&mut function, |_| ()).await);
    let refund = refund_of(&sample_receipt());
    let id = refund.id.to_string();
    assert!(is_refused(&mut function, |event| set_refund(event, &id, 1299)).await);
    put(&engine, &refund).await;
    assert!(is_refused(&mut function, |event| set_refund(event, "01JNA80W00TQ2XNPH2HZ8S6CKQ", 1299)).await);
    assert!(is_refused(&mut function, |event| set_refund(event, &id, 1)).await);
    let failed = |event: &mut Value| {
        set_refund(event, &id, 1299);
        event["type"] = json!("payment.refund_failed");
    };
    assert!(is_refused(&mut function, failed).await, "the refund has succeeded");
    assert_eq!(order_status(&table).await, Some(OrderStatus::BackOrdered));
    assert!(!is_refused(&mut function, |event| set_refund(event, &id, 1299)).await);
    assert_eq!(order_status(&table).await, Some(OrderStatus::Cancelled));
    delete(&engine, &refund).await;
    assert!(!is_refused(&mut function, |event| set_refund(event, &id, 1299)).await, "it was processed before");
}
