//! How things are written down: persistence structs, apart from the model's. An item's identifiers are in its keys alone.

mod goods;
mod order;
mod people;

use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;

pub(in crate::table) use goods::{ArrivalItem, StockItem, StoredSku, listed, product_of, read_stock};
pub(in crate::table) use order::{CreditItem, QuantityItem, credit, customer_of, line, order_of, read_line};
pub(in crate::table) use people::{
    confidential, employee_of, job_record, read_confidential, read_job_record, read_total, total,
};

use super::keys;
use dynamo::{Item, Key, TableError, key_of, n, s, to_item};

/// The item under `key` with `attributes`, which GSI-1 shows if there is `data`.
pub(in crate::table) fn row(key: Key, data: Option<String>, attributes: &impl Serialize) -> Item {
    let mut item = to_item(attributes);
    item.extend(key.attributes());
    item.extend(data.map(|data| ("Data".to_owned(), s(data))));
    item
}

/// Of an edge that carries nothing.
#[derive(Serialize)]
pub(in crate::table) struct Nothing {}

/// The edge from `from` to `to`, by which `to` is found to lead to `data`.
pub(in crate::table) fn edge(from: String, to: impl Into<String>, data: impl Into<String>) -> Item {
    row(keys::edge(from, to), Some(data.into()), &Nothing {})
}

/// The identifier in `text`, which is a part of `item`'s keys.
pub(in crate::table) fn id<T: FromStr>(item: &Item, text: &str, prefix: &str) -> Result<T, TableError> {
    keys::id(text, prefix).ok_or_else(|| TableError::unreadable(key_of(item), format!("{text} is no {prefix} key")))
}

/// The attribute `Data`.
pub(in crate::table) fn data(item: &Item) -> Result<&str, TableError> {
    let data = item.get("Data").and_then(|data| data.as_s().ok());
    data.map(String::as_str).ok_or_else(|| TableError::unreadable(key_of(item), "it has no Data"))
}

fn pk<T: FromStr>(item: &Item, prefix: &str) -> Result<T, TableError> {
    id(item, &key_of(item).pk, prefix)
}

/// A number as an expression's value.
pub(in crate::table) fn number(value: impl ToString) -> AttributeValue {
    n(value)
}
