//! A second reader of the orders table, with which the tests compare the results of the order desk. It scans all items,
//! and finds the result of each access pattern with a simple filter. It uses no index, no copied data, and no function
//! or type of the order desk.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use emulator::Engine;

type Attributes = HashMap<String, AttributeValue>;

/// An order, with the data of the order's item, its line items and the refunds of its payment.
#[derive(Clone, Debug, Default)]
pub struct ScannedOrder {
    pub customer: String,
    pub status: String,
    /// The time of the payment, such as `2027-01-31T07:00:00.000Z`.
    pub paid_at: String,
    pub representative: Option<String>,
    pub warehouse: Option<String>,
    /// The amount of the payment, in minor units.
    pub amount: i64,
    pub currency: String,
    /// The sum of the refunds of the payment, without failed refunds.
    pub refunds: i64,
    /// The quantity of each product, by the product's id.
    pub products: BTreeMap<String, i64>,
}

/// An employee, with the data of the employee's items.
#[derive(Clone, Debug, Default)]
pub struct ScannedEmployee {
    pub name: String,
    pub title: Option<String>,
    pub warehouse: Option<String>,
    pub department: Option<String>,
    pub hired_on: String,
    /// The job titles of the employee's job history, by the first day of the job.
    pub jobs: BTreeMap<String, String>,
}

/// The orders, employees, customers and stocks that a scan of the table found, by id.
#[derive(Debug, Default)]
pub struct NaiveReader {
    pub orders: BTreeMap<String, ScannedOrder>,
    pub employees: BTreeMap<String, ScannedEmployee>,
    /// The representative of each customer, by the customer's id.
    pub customers: BTreeMap<String, Option<String>>,
    /// For each order id, the sum of the refunds of the order's payment, without failed refunds.
    refunds: BTreeMap<String, i64>,
    /// The number of pieces in stock, by product and warehouse.
    pub stock: BTreeMap<(String, String), i64>,
}

/// Returns the string attribute `name` of `item`.
fn string_attribute(item: &Attributes, name: &str) -> Option<String> {
    item.get(name).and_then(|value| value.as_s().ok()).cloned()
}

/// Returns the number attribute `name` of `item`.
fn number_attribute(item: &Attributes, name: &str) -> i64 {
    item[name].as_n().unwrap().parse().unwrap()
}

/// Splits a key such as `ORDER#id` into its two parts.
fn split_key(key: &str) -> (&str, &str) {
    key.split_once('#').unwrap_or((key, ""))
}

impl NaiveReader {
    /// Reads the whole table. Returns the reader and the number of items.
    pub async fn read(engine: &Engine) -> (Self, usize) {
        let scan = engine.client().scan().table_name("dueday-orders").consistent_read(true);
        let items: Result<Vec<Attributes>, _> = scan.into_paginator().items().send().collect().await;
        let (items, mut reader) = (items.unwrap(), Self::default());
        for item in &items {
            reader.add_item(item);
        }
        // A payment for a SKU without products can have refunds, but has no order. Such refunds are left out.
        for (id, order) in &mut reader.orders {
            order.refunds = reader.refunds.get(id).copied().unwrap_or_default();
        }
        (reader, items.len())
    }

    /// Adds the data of one item of the table. Ignores the items that the access patterns do not need.
    fn add_item(&mut self, item: &Attributes) {
        let (pk, sk) = (string_attribute(item, "PK").unwrap(), string_attribute(item, "SK").unwrap());
        let ((kind, id), (end, end_id)) = (split_key(&pk), split_key(&sk));
        let (id, end_id) = (id.to_owned(), end_id.to_owned());
        match (kind, end) {
            ("ORDER", "CUSTOMER") => {
                let order = self.orders.entry(id).or_default();
                order.customer = end_id;
                order.status = string_attribute(item, "Status").unwrap();
                order.paid_at = string_attribute(item, "PlacedDate").unwrap();
                order.representative = string_attribute(item, "Representative");
                order.warehouse = string_attribute(item, "Warehouse");
                order.amount = number_attribute(item, "PaymentAmount");
                order.currency = string_attribute(item, "Currency").unwrap();
            }
            ("ORDER", "REFUNDS") => {
                let refunds = item["Refunds"].as_l().unwrap().iter().map(|refund| refund.as_m().unwrap());
                let made = refunds.filter(|refund| !refund["HasFailed"].as_bool().unwrap());
                self.refunds.insert(id, made.map(|refund| number_attribute(refund, "Amount")).sum());
            }
            ("ORDER", "PRODUCT") => {
                self.orders.entry(id).or_default().products.insert(end_id, number_attribute(item, "Quantity"));
            }
            ("EMP", "EMP") => {
                let employee = self.employees.entry(id).or_default();
                employee.name = string_attribute(item, "Name").unwrap();
                let assignment = item.get("Assignment").map(|assignment| assignment.as_m().unwrap());
                let of_assignment = |name| assignment.and_then(|assignment| string_attribute(assignment, name));
                employee.title = of_assignment("JobTitle");
                employee.warehouse = of_assignment("Warehouse");
                employee.department = of_assignment("Department");
            }
            ("EMP", "JH") => {
                let title = string_attribute(item, "JobTitle").unwrap();
                self.employees.entry(id).or_default().jobs.insert(end_id, title);
            }
            ("EMP", "HR-CONFIDENTIAL") => {
                self.employees.entry(id).or_default().hired_on = string_attribute(item, "Data").unwrap();
            }
            ("CUSTOMER", "CUSTOMER") => {
                self.customers.insert(id, string_attribute(item, "Representative"));
            }
            ("PRODUCT", "WAREHOUSE") => {
                self.stock.insert((id, end_id), number_attribute(item, "Stock"));
            }
            _ => {}
        }
    }

    /// Returns the payment time and the id of each order that fulfils `condition`, oldest payment first.
    pub fn orders_where(&self, condition: impl Fn(&ScannedOrder) -> bool) -> Vec<(String, String)> {
        let found = self.orders.iter().filter(|(_, order)| condition(order));
        let mut found: Vec<_> = found.map(|(id, order)| (order.paid_at.clone(), id.clone())).collect();
        found.sort();
        found
    }

    /// Returns the ids of the employees that fulfil `condition`, sorted.
    pub fn employees_where(&self, condition: impl Fn(&ScannedEmployee) -> bool) -> Vec<String> {
        self.employees.iter().filter(|(_, employee)| condition(employee)).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the number of pieces of `product` in stock, by warehouse.
    pub fn stock_of(&self, product: &str) -> BTreeMap<String, i64> {
        let of_product = self.stock.iter().filter(|((id, _), _)| id == product);
        of_product.map(|((_, warehouse), quantity)| (warehouse.clone(), *quantity)).collect()
    }

    /// Returns the total of each representative's orders in one quarter (such as `2026-Q1`) and one currency, largest
    /// total first.
    pub fn ranking(&self, quarter: &str, currency: &str) -> Vec<(i64, String)> {
        let sums = self
            .representative_totals()
            .into_iter()
            .filter(|((_, of, in_currency), _)| of == quarter && in_currency == currency);
        let mut ranking: Vec<(i64, String)> = sums.map(|((representative, ..), sum)| (sum, representative)).collect();
        ranking.sort_by(|a, b| (b.0, &a.1).cmp(&(a.0, &b.1)));
        ranking
    }

    /// Returns the totals of the orders of `representative` by quarter and currency, oldest quarter first.
    pub fn totals_of(&self, representative: &str) -> Vec<(String, String, i64)> {
        let sums = self.representative_totals().into_iter().filter(|((id, ..), _)| id == representative);
        sums.map(|((_, quarter, currency), sum)| (quarter, currency, sum)).collect()
    }

    /// Returns the totals of the orders by representative, quarter and currency. A total is the sum of the payments
    /// minus their refunds. Cancelled and returned orders do not count. Totals of 0 are left out.
    fn representative_totals(&self) -> BTreeMap<(String, String, String), i64> {
        let mut sums = BTreeMap::new();
        for order in self.orders.values() {
            let Some(representative) = &order.representative else { continue };
            if ["CANCELLED", "RETURNED"].contains(&order.status.as_str()) {
                continue;
            }
            let quarter = match &order.paid_at[5..7] {
                "01" | "02" | "03" => 1,
                "04" | "05" | "06" => 2,
                "07" | "08" | "09" => 3,
                _ => 4,
            };
            let quarter = format!("{}-Q{quarter}", &order.paid_at[..4]);
            *sums.entry((representative.clone(), quarter, order.currency.clone())).or_default() +=
                order.amount - order.refunds;
        }
        sums.retain(|_, sum| *sum != 0);
        sums
    }
}
