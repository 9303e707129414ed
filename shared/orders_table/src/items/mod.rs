//! The stored items of the order desk's table. The attributes of an item are defined by a struct that is separate from
//! the domain type. The identifiers of an entity are stored only in the keys of its item.

mod employees;
mod fill_task;
mod goods;
mod movement;
mod order;

use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;

pub(crate) use employees::{
    StoredQuarterTotal, confidential_item, earlier_key_of_confidential_item, employee_id_in, employee_relation,
    expected_confidential_item, job_record_item, planned_change_error, read_confidential, read_employee_relation,
    read_job_record,
};
pub(crate) use fill_task::{CHANGE, FURTHER, FillPassItem, PASS};
pub(crate) use goods::{
    EarlierDeliveryItem, IS_OPENED, MOVEMENTS, STOCK, StockItem, StoredSku, TOTAL_STOCK, product_id_in,
    read_stock_item, warehouse_list_relation,
};
pub(crate) use order::{
    BUCKET, OrderLineQuantityItem, RepresentativeRelationItem, customer_id_in, order_id_in, product_relation,
    read_order_line, read_warehouse_relation, representative_relation, warehouse_relation,
};

use crate::{OrdersTable, keys};
use dynamo::{Item, Key, TableError, key_of_item, n, s, to_item};
use orders::{Customer, Employee, Order, OrderRefunds, Product, Warehouse};

/// The name of the sort key attribute of both indexes. An item without this attribute is in neither index.
pub(crate) const DATA: &str = "Data";

dynamo::versioned!(OrdersTable: Customer, Employee, Order, OrderRefunds, Product, StoredSku, Warehouse);

/// Returns an item with `key` and `attributes`. `data` is the value of the attribute `Data`; if it is `None`, GSI-1
/// does not contain the item.
pub(crate) fn new_item(key: Key, data: Option<String>, attributes: &impl Serialize) -> Item {
    let mut item = to_item(attributes);
    item.extend(key.attributes());
    item.extend(data.map(|data| (DATA.to_owned(), s(data))));
    item
}

/// The attributes of an item that has no attributes except its keys and `Data`.
#[derive(Serialize)]
pub(crate) struct NoAttributes {}

/// Returns the relation from `from` to `to`: an item that relates the two entities with these keys. A query of GSI-1
/// for `to` returns all its relations, sorted by `data`.
pub(crate) fn new_relation_item(from: String, to: impl Into<String>, data: impl Into<String>) -> Item {
    new_item(keys::key_of_relation(from, to), Some(data.into()), &NoAttributes {})
}

/// Parses the identifier that follows `prefix` in `text`. `key` is the key of the item, for the error message.
///
/// # Errors
/// `text` is not an identifier after `prefix`.
pub(crate) fn parse_id<T: FromStr>(key: &Key, text: &str, prefix: &str) -> Result<T, TableError> {
    keys::id_after_prefix(text, prefix)
        .ok_or_else(|| TableError::unreadable(key.clone(), format!("{text} is not a key with the prefix {prefix:?}")))
}

/// Returns the text in the attribute `Data`.
///
/// # Errors
/// The attribute is missing, or is not a text.
pub(crate) fn data_attribute(item: &Item) -> Result<&str, TableError> {
    let data = item.get(DATA).and_then(|data| data.as_s().ok());
    data.map(String::as_str)
        .ok_or_else(|| TableError::unreadable(key_of_item(item), "the attribute Data is missing or is not a text"))
}

/// Returns the identifier that follows `prefix` in the partition key.
fn id_in_partition_key<T: FromStr>(key: &Key, prefix: &str) -> Result<T, TableError> {
    parse_id(key, &key.pk, prefix)
}

/// Returns the identifier that follows `prefix` in the sort key.
fn id_in_sort_key<T: FromStr>(key: &Key, prefix: &str) -> Result<T, TableError> {
    parse_id(key, &key.sk, prefix)
}

/// Returns `value` as a DynamoDB number, for use in an expression.
pub(crate) fn number_attribute(value: impl ToString) -> AttributeValue {
    n(value)
}
