//! How things are written down: persistence structs, apart from the model's. An item's identifiers are in its keys alone.

mod goods;
mod order;
mod people;

use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;

pub(in crate::table) use goods::{
    ArrivalItem, STOCK, StockItem, StoredSku, TOTAL_STOCK, listed, product_of, read_stock,
};
pub(in crate::table) use order::{BUCKET, CreditItem, QuantityItem, credit, customer_of, line, order_of, read_line};
pub(in crate::table) use people::{
    StoredTotal, confidential, employee_of, job_record, read_confidential, read_job_record,
};

use super::{OrdersTable, keys};
use crate::{Customer, Employee, Order, Product, Warehouse};
use dynamo::{Item, Key, TableError, key_of, n, s, to_item};

/// The attribute by which both indexes are sorted. An item without it is in neither.
pub(in crate::table) const DATA: &str = "Data";

dynamo::versioned!(OrdersTable: Customer, Employee, Order, Product, StoredSku, Warehouse);

/// The item under `key` with `attributes`, which GSI-1 shows if there is `data`.
pub(in crate::table) fn row(key: Key, data: Option<String>, attributes: &impl Serialize) -> Item {
    let mut item = to_item(attributes);
    item.extend(key.attributes());
    item.extend(data.map(|data| (DATA.to_owned(), s(data))));
    item
}

/// Of an edge that carries nothing.
#[derive(Serialize)]
pub(in crate::table) struct Nothing {}

/// The edge from `from` to `to`, by which `to` is found to lead to `data`.
pub(in crate::table) fn edge(from: String, to: impl Into<String>, data: impl Into<String>) -> Item {
    row(keys::edge(from, to), Some(data.into()), &Nothing {})
}

/// The identifier in `text`, which is an attribute of the item under `key`, or a part of the key.
pub(in crate::table) fn id<T: FromStr>(key: &Key, text: &str, prefix: &str) -> Result<T, TableError> {
    keys::id(text, prefix).ok_or_else(|| TableError::unreadable(key.clone(), format!("{text} is no {prefix} key")))
}

/// The attribute `Data`.
pub(in crate::table) fn data(item: &Item) -> Result<&str, TableError> {
    let data = item.get(DATA).and_then(|data| data.as_s().ok());
    data.map(String::as_str).ok_or_else(|| TableError::unreadable(key_of(item), "it has no Data"))
}

fn pk<T: FromStr>(key: &Key, prefix: &str) -> Result<T, TableError> {
    id(key, &key.pk, prefix)
}

fn sk<T: FromStr>(key: &Key, prefix: &str) -> Result<T, TableError> {
    id(key, &key.sk, prefix)
}

/// A number as an expression's value.
pub(in crate::table) fn number(value: impl ToString) -> AttributeValue {
    n(value)
}
