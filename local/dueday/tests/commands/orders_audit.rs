//! Tests of `dueday orders audit`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::types::AttributeValue;
use emulator::Engine;
use tempfile::TempDir;

use crate::orders::{STOCK, folder_with_payments, json_output, run};

/// The name of the orders table.
const ORDERS: &str = "dueday-orders";

/// An item of a table, by attribute name.
type Item = HashMap<String, AttributeValue>;

/// Opens the database of the data folder `data`. Returns the engine, and all items of `table`.
async fn open(data: &Path, table: &str) -> (Engine, Vec<Item>) {
    let engine = Engine::open(&data.join("dynamodb.sqlite")).unwrap();
    let items = engine.client().scan().table_name(table).into_paginator().items().send();
    let items = items.collect::<Result<_, _>>().await.unwrap();
    (engine, items)
}

/// Returns the key of `item`.
fn key_of(item: &Item) -> Item {
    ["PK", "SK"].map(|name| (name.to_owned(), item[name].clone())).into()
}

/// Returns whether the partition key of `item` begins with `pk`, and its sort key with `sk`.
fn has_key(item: &Item, pk: &str, sk: &str) -> bool {
    item["PK"].as_s().unwrap().starts_with(pk) && item["SK"].as_s().unwrap().starts_with(sk)
}

/// Deletes the first item of the payments table with this key, see [`has_key`].
#[tokio::main]
async fn delete_first_item(data: &Path, pk: &str, sk: &str) {
    let (engine, items) = open(data, "dueday").await;
    let item = items.iter().find(|item| has_key(item, pk, sk)).unwrap();
    engine.client().delete_item().table_name("dueday").set_key(Some(key_of(item))).send().await.unwrap();
}

/// Deletes all items of the order of the customer `account`.
#[tokio::main]
async fn delete_order(data: &Path, account: &str) {
    let (engine, items) = open(data, ORDERS).await;
    let own = items.iter().find(|item| has_key(item, "ORDER#", &format!("CUSTOMER#{account}"))).unwrap();
    for item in items.iter().filter(|item| item["PK"] == own["PK"]) {
        engine.client().delete_item().table_name(ORDERS).set_key(Some(key_of(item))).send().await.unwrap();
    }
}

/// Removes all attributes except the key from the first item of the orders table whose partition key begins with `pk`
/// and whose sort key begins with `sk`, so that the item cannot be read. Returns the key and the complete item.
#[tokio::main]
async fn make_unreadable(data: &Path, pk: &str, sk: &str) -> (String, Item) {
    let (engine, items) = open(data, ORDERS).await;
    let item = items.into_iter().find(|item| has_key(item, pk, sk)).unwrap();
    engine.client().put_item().table_name(ORDERS).set_item(Some(key_of(&item))).send().await.unwrap();
    (format!("{} {}", item["PK"].as_s().unwrap(), item["SK"].as_s().unwrap()), item)
}

/// Stores `item` in the orders table.
#[tokio::main]
async fn put_item(data: &Path, item: Item) {
    let engine = Engine::open(&data.join("dynamodb.sqlite")).unwrap();
    engine.client().put_item().table_name(ORDERS).set_item(Some(item)).send().await.unwrap();
}

/// Creates a data folder with three paid months and their orders.
fn folder_with_orders() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let stock = folder.path().join("stock.csv");
    std::fs::write(&stock, STOCK).unwrap();
    let data = folder_with_payments(folder.path());
    assert_eq!(run(&data, &["orders", "import", stock.to_str().unwrap()]).0, 0);
    (folder, data)
}

#[test]
fn audit_names_each_order_and_receipt_without_its_counterpart() {
    let (_folder, data) = folder_with_orders();
    let report = json_output(&data, &["orders", "audit"]);
    assert_eq!((&report["orders"], &report["receipts"]), (&3.into(), &3.into()), "{report}");
    assert_eq!((&report["differences"], &report["changed"]), (&serde_json::json!([]), &serde_json::json!([])));

    delete_order(&data, "acme");
    let (code, stdout, stderr) = run(&data, &["orders", "audit"]);
    assert!(code == 1 && stdout.contains("an order of acme for gold"), "{stdout}{stderr}");
    assert!(stdout.contains("1 difference (ordered 1)"), "{stdout}");

    // Now each receipt has an order, but the order of `bell` has no receipt.
    delete_first_item(&data, "ACC#acme", "REC#");
    delete_first_item(&data, "ACC#bell", "REC#");
    let (code, stdout, stderr) = run(&data, &["orders", "audit"]);
    assert!(code == 1 && stdout.contains("a receipt of 12.99 EUR for bell"), "{stdout}{stderr}");
    assert!(stdout.contains("1 difference (paid 1)"), "{stdout}");
}

#[test]
fn audit_names_an_item_that_cannot_be_read_with_the_next_step_and_exits_with_1() {
    let (_folder, data) = folder_with_orders();
    for (pk, sk) in [
        ("CUSTOMER#", "CUSTOMER#"),
        ("PRODUCT#", "PRODUCT#"),
        ("SKU#", "PRODUCT#"),
        ("ORDER#", "PRODUCT#"),
        ("SETTINGS", "SETTINGS"),
    ] {
        let (key, item) = make_unreadable(&data, pk, sk);
        let (code, stdout, stderr) = run(&data, &["orders", "audit"]);
        assert_eq!(code, 1, "{key}: {stdout}{stderr}");
        assert!(stdout.contains("readable") && stdout.contains(&key), "{key}: {stdout}");
        assert!(stdout.contains("\nreadable: Repair the item by hand, or restore it from a backup"), "{stdout}");
        put_item(&data, item);
    }
    let (code, stdout, stderr) = run(&data, &["orders", "audit"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
}
