//! Indexes that lag behind the orders table: a query of an index returns the items as they were at the last update of
//! the indexes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use emulator::{Engine, RequestObserver};
use orders::OrdersTable;
use serde_json::Value;

/// The name of the orders table.
const TABLE: &str = "dueday-orders";

type Item = HashMap<String, AttributeValue>;

/// Responds to each query of an index with the data of a copy of the table.
pub struct StaleIndexes {
    /// The engine with the current table.
    table: Engine,
    /// The engine with the copy, which changes only when a test updates the indexes.
    copy: Engine,
}

impl StaleIndexes {
    /// Creates the indexes from the current items of `table`.
    pub async fn new(table: &Engine) -> Arc<Self> {
        let (table, copy) = (table.clone(), Engine::memory());
        OrdersTable::new(copy.client(), TABLE).create_if_absent().await.unwrap();
        let indexes = Self { table, copy };
        indexes.update().await;
        Arc::new(indexes)
    }

    /// Updates the indexes: their queries then return the current items of the table.
    pub async fn update(&self) {
        let (present, old) = (items(&self.table).await, items(&self.copy).await);
        let client = self.copy.client();
        let keys: HashSet<String> = present.iter().map(key_text).collect();
        for item in old.iter().filter(|item| !keys.contains(&key_text(item))) {
            let key: Item = ["PK", "SK"].map(|name| (name.to_owned(), item[name].clone())).into();
            client.delete_item().table_name(TABLE).set_key(Some(key)).send().await.unwrap();
        }
        for item in present.into_iter().filter(|item| !old.contains(item)) {
            client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
        }
    }
}

impl RequestObserver for StaleIndexes {
    fn replacement_response(&self, operation: &str, request: &Value) -> Option<Value> {
        let is_of_index = operation == "Query" && request.get("IndexName").is_some();
        is_of_index.then(|| self.copy.execute(operation, request).unwrap())
    }

    fn completed(&self, _operation: &str, _request: &Value, _response: Result<&str, &str>) {}
}

/// Returns all items of the table in `engine`.
async fn items(engine: &Engine) -> Vec<Item> {
    let scan = engine.client().scan().table_name(TABLE).consistent_read(true);
    let items: Result<Vec<Item>, _> = scan.into_paginator().items().send().collect().await;
    items.unwrap()
}

/// Returns the primary key of `item` as a text, so that keys can be compared.
fn key_text(item: &Item) -> String {
    format!("{:?} {:?}", item["PK"], item["SK"])
}
