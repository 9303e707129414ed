//! Tests of the report about a paid SKU without products. The Lambda function and the server on one machine both pass
//! each event to [`orders_desk::process_event`], which logs the report.

use std::sync::Arc;

use billing::{ReceivedEvent, Sku};
use clock::{Clock as _, SystemClock};
use emulator::{Engine, EngineConnection, ExternalOperation, Fault};
use orders::{Product, Warehouse};
use orders_desk::{OrderDesk, SKU_WITHOUT_PRODUCTS_MESSAGE, process_event};
use orders_table::{OrdersTable, WriteOutcome};
use serde_json::Value;
use testkit::capture_log_lines;

/// Returns an order desk without data, and its engine.
async fn empty_desk() -> (Engine, OrderDesk) {
    let engine = Engine::in_memory();
    let table = OrdersTable::new(engine.client(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    let buckets = table.get_or_store_buckets(orders_table::BucketCount::default()).await.unwrap();
    (engine, OrderDesk::new(table, buckets, Arc::new(SystemClock)))
}

/// Passes the sample event of a payment for the SKU `gold` to `desk`. Returns the fields of the warnings.
async fn warnings_of_payment(desk: &OrderDesk) -> Vec<Value> {
    let path = format!("{}/../../events/sqs-paid.json", env!("CARGO_MANIFEST_DIR"));
    let queue: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let event = ReceivedEvent::read(queue["Records"][0]["body"].as_str().unwrap()).unwrap();
    let (lines, logging) = capture_log_lines();
    process_event(desk, &event).await.unwrap();
    drop(logging);
    lines.fields_of_lines()
}

/// Asserts that `warnings` contains one report of the SKU `gold`.
fn assert_reported(warnings: &[Value]) {
    let message = format!(
        "{SKU_WITHOUT_PRODUCTS_MESSAGE}: payments for this SKU create no orders until `dueday orders import` defines its \
         products"
    );
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!((&warnings[0]["message"], &warnings[0]["sku"]), (&message.into(), &"gold".into()));
}

#[tokio::test]
async fn sku_without_products_is_reported_once() {
    let (_engine, desk) = empty_desk().await;
    assert_reported(&warnings_of_payment(&desk).await);
    assert_eq!(warnings_of_payment(&desk).await, [] as [Value; 0], "it was reported before");
}

#[tokio::test]
async fn report_is_repeated_until_it_is_saved() {
    let (engine, desk) = empty_desk().await;
    let fails = EngineConnection::with_faults(|call| {
        matches!(call.operation, ExternalOperation::DynamoDb("PutItem"))
            .then_some(Fault::Refused("ValidationException"))
    });
    let table = OrdersTable::new(engine.client_with_connection(Arc::new(fails.without_retries())), "dueday-orders");
    let failing = OrderDesk::new(table, desk.buckets(), Arc::new(SystemClock));
    for _ in 0..2 {
        let warnings = warnings_of_payment(&failing).await;
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert_reported(&warnings[..1]);
        assert_eq!(warnings[1]["error_type"], "Table", "{warnings:?}");
    }
    assert_reported(&warnings_of_payment(&desk).await);
}

#[tokio::test]
async fn merchant_without_goods_gets_no_report() {
    let gold: Sku = "gold".parse().unwrap();
    for has_product in [true, false] {
        let (_engine, desk) = empty_desk().await;
        let desk = desk.with_optional_goods();
        assert_eq!(warnings_of_payment(&desk).await, [] as [Value; 0], "no warehouse and no product is stored");
        assert!(!desk.table.is_without_products_reported(&gold).await.unwrap());
        let id = "beans".parse().unwrap();
        let product =
            Product { id, name: "Beans".parse().unwrap(), total_stock: 0, created_at: SystemClock.now(), version: 1 };
        let (id, region) = ("ams".parse().unwrap(), "eu".parse().unwrap());
        let warehouse = Warehouse { id, name: "Amsterdam".parse().unwrap(), region, version: 1 };
        let created = match has_product {
            true => desk.table.create_product(&product).await.unwrap(),
            false => desk.table.create_warehouse(&warehouse).await.unwrap(),
        };
        assert_eq!(created, WriteOutcome::Done);
        assert_reported(&warnings_of_payment(&desk).await);
        assert_eq!(warnings_of_payment(&desk).await, [] as [Value; 0], "it was reported before");
    }
}
