//! All kinds of items of the table, and the check of one item: it must be readable, contain what this program would
//! store with the same content, and expire within the time of its kind.

use chrono::{DateTime, Utc};

use crate::items::{
    EarlierDeliveryItem, NoAttributes, OrderLineQuantityItem, StockItem, StoredSku, data_attribute, job_record_item,
    new_item, parse_id, read_confidential, read_job_record, read_order_line, read_stock_item,
};
use crate::people::company::ReferencedEntity;
use crate::people::company::own_item_of_entity;
use crate::people::quarter_totals::expected_quarter_total_item;
use crate::settings::expected_settings_item;
use crate::{OrdersTable, keys};
use billing::Sku;
use dynamo::{
    FaultyItem, IDEMPOTENCY_RECORDS, IDEMPOTENCY_RETENTION, Item, ItemKind, Key, TableError, check_idempotency_record,
    check_item, entity_item, from_item, is_of_kind, key_of_item,
};
use orders::{
    Country, Customer, Department, Employee, FillTask, Job, Location, Movement, Order, OrderMovement, OrderRefunds,
    Product, ProductId, Region, Warehouse,
};
use ulid::Ulid;

/// The kinds of relations: the items by which GSI-1 finds an entity. [`crate::audit::partition_check`] compares their content
/// with the own item of the entity.
const RELATIONS: [ItemKind; 25] = [
    (keys::ORDER_PREFIX, keys::EMPLOYEE_PREFIX, readable_relation_item, None),
    (keys::ORDER_PREFIX, keys::PRODUCT_PREFIX, readable_relation_item, None),
    (keys::ORDER_PREFIX, keys::WAREHOUSE_PREFIX, readable_relation_item, None),
    (keys::CUSTOMER_PREFIX, keys::EMPLOYEE_PREFIX, readable_relation_item, None),
    (keys::EMPLOYEE_PREFIX, keys::EMPLOYEE_NAME_PREFIX, readable_relation_item, None),
    (keys::EMPLOYEE_PREFIX, keys::JOB_TITLE_PREFIX, readable_relation_item, None),
    (keys::EMPLOYEE_PREFIX, keys::DEPARTMENT_PREFIX, readable_relation_item, None),
    (keys::EMPLOYEE_PREFIX, keys::WAREHOUSE_PREFIX, readable_relation_item, None),
    (keys::EMPLOYEE_PREFIX, keys::REPRESENTATIVES, readable_relation_item, None),
    (keys::EMPLOYEE_PREFIX, keys::CONFIDENTIAL, readable_confidential_item, None),
    (keys::PRODUCT_PREFIX, keys::PRODUCT_NAME_PREFIX, readable_relation_item, None),
    (keys::PRODUCT_PREFIX, keys::ALL_PRODUCTS, readable_relation_item, None),
    (keys::WAREHOUSE_PREFIX, keys::REGION_PREFIX, readable_relation_item, None),
    (keys::WAREHOUSE_PREFIX, keys::ALL_WAREHOUSES, readable_relation_item, None),
    (keys::REGION_PREFIX, keys::REGION_NAME_PREFIX, readable_relation_item, None),
    (keys::REGION_PREFIX, keys::ALL_REGIONS, readable_relation_item, None),
    (keys::COUNTRY_PREFIX, keys::COUNTRY_NAME_PREFIX, readable_relation_item, None),
    (keys::COUNTRY_PREFIX, keys::REGION_PREFIX, readable_relation_item, None),
    (keys::COUNTRY_PREFIX, keys::ALL_COUNTRIES, readable_relation_item, None),
    (keys::LOCATION_PREFIX, keys::COUNTRY_NAME_PREFIX, readable_relation_item, None),
    (keys::LOCATION_PREFIX, keys::ALL_LOCATIONS, readable_relation_item, None),
    (keys::JOB_PREFIX, keys::JOB_TITLE_PREFIX, readable_relation_item, None),
    (keys::JOB_PREFIX, keys::ALL_JOBS, readable_relation_item, None),
    (keys::DEPARTMENT_PREFIX, keys::LOCATION_PREFIX, readable_relation_item, None),
    (keys::DEPARTMENT_PREFIX, keys::ALL_DEPARTMENTS, readable_relation_item, None),
];

/// The kinds of all other items: the own items of entities, and records.
const OTHER_ITEMS: [ItemKind; 24] = [
    (keys::ORDER_PREFIX, keys::CUSTOMER_PREFIX, entity_item::<OrdersTable, Order>, None),
    (keys::ORDER_PREFIX, keys::MOVEMENT_PREFIX, entity_item::<OrdersTable, OrderMovement>, None),
    (keys::ORDER_PREFIX, keys::REFUNDS, entity_item::<OrdersTable, OrderRefunds>, None),
    (keys::CUSTOMER_PREFIX, keys::CUSTOMER_PREFIX, entity_item::<OrdersTable, Customer>, None),
    (keys::EMPLOYEE_PREFIX, keys::EMPLOYEE_PREFIX, entity_item::<OrdersTable, Employee>, None),
    (keys::EMPLOYEE_PREFIX, keys::JOB_HISTORY_PREFIX, expected_job_history_item, None),
    // The sort key of a quarter total begins with the year.
    (keys::EMPLOYEE_PREFIX, "", expected_quarter_total_item, None),
    (keys::PRODUCT_PREFIX, keys::PRODUCT_PREFIX, entity_item::<OrdersTable, Product>, None),
    (keys::PRODUCT_PREFIX, keys::WAREHOUSE_PREFIX, expected_stock_item, None),
    (keys::PRODUCT_PREFIX, keys::MOVEMENT_PREFIX, entity_item::<OrdersTable, Movement>, None),
    (keys::PRODUCT_PREFIX, keys::DELIVERY_RECORD_PREFIX, expected_delivery_record_item, None),
    (keys::WAREHOUSE_PREFIX, keys::WAREHOUSE_PREFIX, entity_item::<OrdersTable, Warehouse>, None),
    (keys::SKU_PREFIX, keys::SKU_PREFIX, entity_item::<OrdersTable, StoredSku>, None),
    (keys::SKU_PREFIX, keys::PRODUCT_PREFIX, expected_sku_line_item, None),
    (keys::SKU_PREFIX, keys::NO_PRODUCTS_REPORT, expected_no_products_report_item, None),
    (keys::REGION_PREFIX, keys::REGION_PREFIX, expected_reference_item::<Region>, None),
    (keys::COUNTRY_PREFIX, keys::COUNTRY_PREFIX, expected_reference_item::<Country>, None),
    (keys::LOCATION_PREFIX, keys::LOCATION_PREFIX, expected_reference_item::<Location>, None),
    (keys::JOB_PREFIX, keys::JOB_PREFIX, expected_reference_item::<Job>, None),
    (keys::DEPARTMENT_PREFIX, keys::DEPARTMENT_PREFIX, expected_reference_item::<Department>, None),
    (keys::FILLS, keys::PRODUCT_PREFIX, entity_item::<OrdersTable, FillTask>, None),
    (keys::FILLS, keys::CUSTOMER_PREFIX, entity_item::<OrdersTable, FillTask>, None),
    (keys::SETTINGS, keys::SETTINGS, expected_settings_item, None),
    (IDEMPOTENCY_RECORDS, IDEMPOTENCY_RECORDS, check_idempotency_record, Some(IDEMPOTENCY_RETENTION)),
];

/// Returns the kinds of items of the table: the prefixes of the partition key and of the sort key.
pub fn item_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    RELATIONS.iter().chain(&OTHER_ITEMS).map(|(pk, sk, ..)| (*pk, *sk))
}

/// Returns whether `key` is the key of a relation.
pub(crate) fn is_relation_key(key: &Key) -> bool {
    RELATIONS.iter().any(|kind| is_of_kind(key, kind))
}

/// Returns what is wrong with `item` at the time `now`. Reads no other item.
pub(crate) fn check_item_alone(item: &Item, now: DateTime<Utc>) -> Vec<FaultyItem> {
    check_item(RELATIONS.iter().chain(&OTHER_ITEMS), item, now)
}

/// Returns the relation `item` itself, because its content follows from the own item of its entity.
fn readable_relation_item(item: &Item) -> Result<Item, TableError> {
    data_attribute(item).map(|_| item.clone())
}

/// Returns `item` itself if the confidential data of an employee in it can be read. Its other content follows from the
/// own item of the employee.
fn readable_confidential_item(item: &Item) -> Result<Item, TableError> {
    read_confidential(item).map(|_| item.clone())
}

/// Returns the item that this program would store for the region, country, location, job or department in `item`.
fn expected_reference_item<E: ReferencedEntity>(item: &Item) -> Result<Item, TableError> {
    Ok(own_item_of_entity(&from_item::<E>(item)?))
}

/// Returns the item that this program would store for the entry of a job history in `item`.
fn expected_job_history_item(item: &Item) -> Result<Item, TableError> {
    Ok(job_record_item(&read_job_record(item)?))
}

/// Returns the item that this program would store for the stock of a product in a warehouse in `item`.
fn expected_stock_item(item: &Item) -> Result<Item, TableError> {
    let stock = read_stock_item(item)?;
    let key = keys::key_of_relation(keys::key_of_product(&stock.product), keys::key_of_warehouse(&stock.warehouse));
    Ok(new_item(key, None, &from_item::<StockItem>(item)?))
}

/// Returns the item that an earlier version of Dueday would have stored for the delivery record in `item`.
fn expected_delivery_record_item(item: &Item) -> Result<Item, TableError> {
    let key = key_of_item(item);
    let product: ProductId = parse_id(&key, &key.pk, keys::PRODUCT_PREFIX)?;
    let delivery: Ulid = parse_id(&key, &key.sk, keys::DELIVERY_RECORD_PREFIX)?;
    Ok(new_item(keys::key_of_delivery_record(&product, delivery), None, &from_item::<EarlierDeliveryItem>(item)?))
}

/// Returns the item that this program would store for the product of a SKU in `item`.
fn expected_sku_line_item(item: &Item) -> Result<Item, TableError> {
    let (line, sku) = (read_order_line(item)?, sku_in_partition_key(item)?);
    let key = keys::key_of_relation(keys::key_of_sku(&sku), keys::key_of_product(&line.product));
    Ok(new_item(key, None, &OrderLineQuantityItem { quantity: line.quantity }))
}

/// Returns the item that this program would store for the report of a SKU without products in `item`.
fn expected_no_products_report_item(item: &Item) -> Result<Item, TableError> {
    Ok(new_item(keys::key_of_no_products_report(&sku_in_partition_key(item)?), None, &NoAttributes {}))
}

/// Returns the SKU from the partition key of `item`.
fn sku_in_partition_key(item: &Item) -> Result<Sku, TableError> {
    let key = key_of_item(item);
    parse_id(&key, &key.pk, keys::SKU_PREFIX)
}
