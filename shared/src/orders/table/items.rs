//! How things are written down: persistence structs, apart from the model's. An item's identifiers are in its keys alone.

use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::super::{
    Assignment, Confidential, Customer, Employee, EmployeeId, JobId, JobRecord, Order, OrderLine, OrderStatus, Product,
    QuarterTotal, ShippingAddress, Stock, WaitsFor, Warehouse, WarehouseId,
};
use super::keys;
use crate::billing::{AccountId, Currency, Label, Money};
use crate::orders::{DepartmentId, PlaceId};
use crate::table::{Instant, Item, Key, TableError, Versioned, from_item, key_of, n, s, to_item};

/// The item under `key` with `attributes`, which GSI-1 shows if there is `data`.
pub(super) fn row(key: Key, data: Option<String>, attributes: &impl Serialize) -> Item {
    let mut item = to_item(attributes);
    item.extend(key.attributes());
    item.extend(data.map(|data| ("Data".to_owned(), s(data))));
    item
}

/// Of an edge that carries nothing.
#[derive(Serialize)]
pub(super) struct Nothing {}

/// The edge from `from` to `to`, by which `to` is found to lead to `data`.
pub(super) fn edge(from: String, to: impl Into<String>, data: impl Into<String>) -> Item {
    row(keys::edge(from, to), Some(data.into()), &Nothing {})
}

/// The identifier in `text`, which is a part of `item`'s keys.
pub(super) fn id<T: FromStr>(item: &Item, text: &str, prefix: &str) -> Result<T, TableError> {
    keys::id(text, prefix).ok_or_else(|| TableError::unreadable(key_of(item), format!("{text} is no {prefix} key")))
}

/// The attribute `Data`.
pub(super) fn data(item: &Item) -> Result<&str, TableError> {
    let data = item.get("Data").and_then(|data| data.as_s().ok());
    data.map(String::as_str).ok_or_else(|| TableError::unreadable(key_of(item), "it has no Data"))
}

fn pk<T: FromStr>(item: &Item, prefix: &str) -> Result<T, TableError> {
    id(item, &key_of(item).pk, prefix)
}

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OrderItem {
    status: OrderStatus,
    waits_for: Option<WaitsFor>,
    representative: Option<EmployeeId>,
    warehouse: Option<WarehouseId>,
    payment_amount: i64,
    currency: Currency,
    placed_date: Instant,
    bucket: u32,
    version: u64,
}

impl Versioned for Order {
    fn key(&self) -> Key {
        keys::edge(keys::order(self.id), keys::customer(&self.customer))
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    fn to_item(&self) -> Item {
        let item = OrderItem {
            status: self.status,
            waits_for: self.waits_for,
            representative: self.representative.clone(),
            warehouse: self.warehouse.clone(),
            payment_amount: self.total.minor(),
            currency: self.total.currency(),
            placed_date: Instant(self.placed_at),
            bucket: self.bucket,
            version: self.version,
        };
        row(self.key(), Some(keys::status_data(self)), &item)
    }

    fn from_item(item: &Item) -> Result<Self, TableError> {
        let read: OrderItem = from_item(item)?;
        Ok(Self {
            id: pk(item, keys::ORDERS)?,
            customer: id(item, &key_of(item).sk, keys::CUSTOMERS)?,
            representative: read.representative,
            status: read.status,
            waits_for: read.waits_for,
            warehouse: read.warehouse,
            total: Money::new(read.payment_amount, read.currency),
            placed_at: read.placed_date.0,
            bucket: read.bucket,
            version: read.version,
        })
    }
}

/// The edge from an order to whoever is credited with it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CreditItem {
    pub customer: AccountId,
    pub payment_amount: i64,
    pub currency: Currency,
}

pub(super) fn credit(order: &Order) -> Item {
    let key = keys::edge(keys::order(order.id), keys::representative(order.representative.as_ref()));
    let Order { customer, total, .. } = order.clone();
    let item = CreditItem { customer, payment_amount: total.minor(), currency: total.currency() };
    row(key, Some(keys::status_data(order)), &item)
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct QuantityItem {
    pub quantity: u32,
}

/// The edge from an order to one of its products.
pub(super) fn line(order: &Order, line: &OrderLine) -> Item {
    let key = keys::edge(keys::order(order.id), keys::product(&line.product));
    row(key, Some(keys::status_data(order)), &QuantityItem { quantity: line.quantity })
}

/// The line of an order, or of a SKU, that `item` is.
pub(super) fn read_line(item: &Item) -> Result<OrderLine, TableError> {
    let QuantityItem { quantity } = from_item(item)?;
    Ok(OrderLine { product: id(item, &key_of(item).sk, keys::PRODUCTS)?, quantity })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AddressItem {
    name: Label,
    street: Label,
    postal_code: Label,
    city: Label,
    country: PlaceId,
    region: PlaceId,
}

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CustomerItem {
    representative: Option<EmployeeId>,
    shipping_address: Option<AddressItem>,
    created_date: Instant,
    version: u64,
}

impl Versioned for Customer {
    fn key(&self) -> Key {
        keys::own(keys::customer(&self.account))
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    fn to_item(&self) -> Item {
        let address = self.address.clone().map(|address| {
            let ShippingAddress { name, street, postal_code, city, country, region } = address;
            AddressItem { name, street, postal_code, city, country, region }
        });
        let item = CustomerItem {
            representative: self.representative.clone(),
            shipping_address: address,
            created_date: Instant(self.created_at),
            version: self.version,
        };
        row(self.key(), None, &item)
    }

    fn from_item(item: &Item) -> Result<Self, TableError> {
        let read: CustomerItem = from_item(item)?;
        let address = read.shipping_address.map(|address| {
            let AddressItem { name, street, postal_code, city, country, region } = address;
            ShippingAddress { name, street, postal_code, city, country, region }
        });
        Ok(Self {
            account: pk(item, keys::CUSTOMERS)?,
            representative: read.representative,
            address,
            created_at: read.created_date.0,
            version: read.version,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ProductItem {
    name: Label,
    total_stock: u64,
    created_date: Instant,
    version: u64,
}

impl Versioned for Product {
    fn key(&self) -> Key {
        keys::own(keys::product(&self.id))
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    fn to_item(&self) -> Item {
        let item = ProductItem {
            name: self.name.clone(),
            total_stock: self.total_stock,
            created_date: Instant(self.created_at),
            version: self.version,
        };
        row(self.key(), None, &item)
    }

    fn from_item(item: &Item) -> Result<Self, TableError> {
        let ProductItem { name, total_stock, created_date, version } = from_item(item)?;
        Ok(Self { id: pk(item, keys::PRODUCTS)?, name, total_stock, created_at: created_date.0, version })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct StockItem {
    pub stock: u64,
}

pub(super) fn read_stock(item: &Item) -> Result<Stock, TableError> {
    let StockItem { stock } = from_item(item)?;
    let warehouse = id(item, &key_of(item).sk, keys::WAREHOUSES)?;
    Ok(Stock { product: pk(item, keys::PRODUCTS)?, warehouse, quantity: stock })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WarehouseItem {
    name: Label,
    region: PlaceId,
    version: u64,
}

impl Versioned for Warehouse {
    fn key(&self) -> Key {
        keys::own(keys::warehouse(&self.id))
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    fn to_item(&self) -> Item {
        let item = WarehouseItem { name: self.name.clone(), region: self.region.clone(), version: self.version };
        row(self.key(), None, &item)
    }

    fn from_item(item: &Item) -> Result<Self, TableError> {
        let WarehouseItem { name, region, version } = from_item(item)?;
        Ok(Self { id: pk(item, keys::WAREHOUSES)?, name, region, version })
    }
}

/// The edge by which all warehouses are listed: a copy of `warehouse`, so that choosing one reads one partition.
pub(super) fn listed(warehouse: &Warehouse) -> Item {
    let mut item = warehouse.to_item();
    item.insert("SK".to_owned(), s(keys::ALL_WAREHOUSES));
    item.insert("Data".to_owned(), s(keys::warehouse(&warehouse.id)));
    item
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TotalItem {
    total: i64,
    currency: Currency,
    version: u64,
}

/// The total of an employee, under the key of its quarter and bucket.
pub(super) fn total(total: &QuarterTotal, key: Key) -> Item {
    let (minor, currency) = (total.total.minor(), total.total.currency());
    row(key, Some(keys::amount_data(minor)), &TotalItem { total: minor, currency, version: total.version })
}

pub(super) fn read_total(item: &Item) -> Result<QuarterTotal, TableError> {
    let TotalItem { total, currency, version } = from_item(item)?;
    let sk = key_of(item).sk;
    let quarter = sk.split('#').next().and_then(|quarter| quarter.parse().ok());
    let quarter = quarter.ok_or_else(|| TableError::unreadable(key_of(item), "its key names no quarter"))?;
    Ok(QuarterTotal {
        representative: pk(item, keys::EMPLOYEES)?,
        quarter,
        total: Money::new(total, currency),
        version,
    })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssignmentItem {
    job: JobId,
    job_title: Label,
    represents_customers: bool,
    department: DepartmentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    warehouse: Option<WarehouseId>,
}

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EmployeeItem {
    name: Label,
    assignment: Option<AssignmentItem>,
    left_date: Option<NaiveDate>,
    created_date: Instant,
    version: u64,
}

impl Versioned for Employee {
    fn key(&self) -> Key {
        keys::own(keys::employee(&self.id))
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    fn to_item(&self) -> Item {
        let assignment = self.assignment.clone().map(|assignment| {
            let Assignment { job, job_title, represents_customers, department, warehouse } = assignment;
            AssignmentItem { job, job_title, represents_customers, department, warehouse }
        });
        let item = EmployeeItem {
            name: self.name.clone(),
            assignment,
            left_date: self.left_on,
            created_date: Instant(self.created_at),
            version: self.version,
        };
        row(self.key(), None, &item)
    }

    fn from_item(item: &Item) -> Result<Self, TableError> {
        let EmployeeItem { name, assignment, left_date, created_date, version } = from_item(item)?;
        let assignment = assignment.map(|assignment| {
            let AssignmentItem { job, job_title, represents_customers, department, warehouse } = assignment;
            Assignment { job, job_title, represents_customers, department, warehouse }
        });
        let id = pk(item, keys::EMPLOYEES)?;
        Ok(Self { id, name, assignment, left_on: left_date, created_at: created_date.0, version })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct JobRecordItem {
    job: JobId,
    job_title: Label,
    department: DepartmentId,
}

pub(super) fn job_record(record: &JobRecord) -> Item {
    let JobRecord { employee, from, job, job_title, department } = record.clone();
    let key = keys::edge(keys::employee(&employee), keys::job_record(from));
    row(key, None, &JobRecordItem { job, job_title, department })
}

pub(super) fn read_job_record(item: &Item) -> Result<JobRecord, TableError> {
    let JobRecordItem { job, job_title, department } = from_item(item)?;
    let from = id(item, &key_of(item).sk, keys::JOB_HISTORY)?;
    Ok(JobRecord { employee: pk(item, keys::EMPLOYEES)?, from, job, job_title, department })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ConfidentialItem {
    salary: i64,
    currency: Currency,
}

pub(super) fn confidential(confidential: &Confidential, year: i32) -> Item {
    let Confidential { employee, hired_on, salary } = confidential;
    let key = keys::edge(keys::employee(employee), keys::confidential(year));
    let item = ConfidentialItem { salary: salary.minor(), currency: salary.currency() };
    row(key, Some(hired_on.to_string()), &item)
}

pub(super) fn read_confidential(item: &Item) -> Result<Confidential, TableError> {
    let ConfidentialItem { salary, currency } = from_item(item)?;
    let hired_on = id(item, data(item)?, "")?;
    Ok(Confidential { employee: pk(item, keys::EMPLOYEES)?, hired_on, salary: Money::new(salary, currency) })
}

/// A number as an expression's value.
pub(super) fn number(value: impl ToString) -> AttributeValue {
    n(value)
}

/// The employee that an edge leads from.
pub(super) fn employee_of(item: &Item) -> Result<EmployeeId, TableError> {
    pk(item, keys::EMPLOYEES)
}

/// The customer that an edge leads from.
pub(super) fn customer_of(item: &Item) -> Result<AccountId, TableError> {
    pk(item, keys::CUSTOMERS)
}

/// The order that an edge leads from.
pub(super) fn order_of(item: &Item) -> Result<crate::orders::OrderId, TableError> {
    pk(item, keys::ORDERS)
}
