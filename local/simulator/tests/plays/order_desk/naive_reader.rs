//! A second reader of the orders table: it scans all items, keeps the own items of the entities, and answers each
//! access pattern with a plain filter. It uses no index, no relation, no key function and no type of the order desk.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use emulator::Engine;

type Attributes = HashMap<String, AttributeValue>;

/// An order, as its own item and its lines contain it.
#[derive(Clone, Debug, Default)]
pub struct ScannedOrder {
    pub customer: String,
    pub status: String,
    /// When the payment was made, such as `2027-01-31T07:00:00.000Z`.
    pub paid_at: String,
    pub representative: Option<String>,
    pub warehouse: Option<String>,
    pub amount: i64,
    pub currency: String,
    /// The sum of the refunds of the payment that did not fail.
    pub refunds: i64,
    pub products: BTreeMap<String, i64>,
}

/// An employee, as its own item contains it.
#[derive(Clone, Debug, Default)]
pub struct ScannedEmployee {
    pub name: String,
    pub title: Option<String>,
    pub warehouse: Option<String>,
    pub department: Option<String>,
    pub hired_on: String,
    /// The title of each job of the job history, by its first day.
    pub jobs: BTreeMap<String, String>,
}

/// The entities of the table, by id.
#[derive(Debug, Default)]
pub struct NaiveReader {
    pub orders: BTreeMap<String, ScannedOrder>,
    pub employees: BTreeMap<String, ScannedEmployee>,
    /// The representative of each customer.
    pub customers: BTreeMap<String, Option<String>>,
    /// The sum of the refunds of each payment that did not fail, by the order of its month.
    refunds: BTreeMap<String, i64>,
    /// The stock by product and warehouse.
    pub stock: BTreeMap<(String, String), i64>,
}

fn text(item: &Attributes, name: &str) -> Option<String> {
    item.get(name).and_then(|value| value.as_s().ok()).cloned()
}

fn number(item: &Attributes, name: &str) -> i64 {
    item[name].as_n().unwrap().parse().unwrap()
}

fn split(key: &str) -> (&str, &str) {
    key.split_once('#').unwrap_or((key, ""))
}

impl NaiveReader {
    /// Reads the whole table. Returns the reader and the number of items.
    pub async fn read(engine: &Engine) -> (Self, usize) {
        let scan = engine.client().scan().table_name("dueday-orders").consistent_read(true);
        let items: Result<Vec<Attributes>, _> = scan.into_paginator().items().send().collect().await;
        let (items, mut reader) = (items.unwrap(), Self::default());
        for item in &items {
            reader.add(item);
        }
        // A month without products has refunds, but no order.
        for (id, order) in &mut reader.orders {
            order.refunds = reader.refunds.get(id).copied().unwrap_or_default();
        }
        (reader, items.len())
    }

    fn add(&mut self, item: &Attributes) {
        let (pk, sk) = (text(item, "PK").unwrap(), text(item, "SK").unwrap());
        let ((kind, id), (end, end_id)) = (split(&pk), split(&sk));
        let (id, end_id) = (id.to_owned(), end_id.to_owned());
        match (kind, end) {
            ("ORDER", "CUSTOMER") => {
                let order = self.orders.entry(id).or_default();
                order.customer = end_id;
                order.status = text(item, "Status").unwrap();
                order.paid_at = text(item, "PlacedDate").unwrap();
                order.representative = text(item, "Representative");
                order.warehouse = text(item, "Warehouse");
                order.amount = number(item, "PaymentAmount");
                order.currency = text(item, "Currency").unwrap();
            }
            ("ORDER", "REFUNDS") => {
                let refunds = item["Refunds"].as_l().unwrap().iter().map(|refund| refund.as_m().unwrap());
                let made = refunds.filter(|refund| !refund["HasFailed"].as_bool().unwrap());
                self.refunds.insert(id, made.map(|refund| number(refund, "Amount")).sum());
            }
            ("ORDER", "PRODUCT") => {
                self.orders.entry(id).or_default().products.insert(end_id, number(item, "Quantity"));
            }
            ("EMP", "EMP") => {
                let employee = self.employees.entry(id).or_default();
                employee.name = text(item, "Name").unwrap();
                let assignment = item.get("Assignment").map(|assignment| assignment.as_m().unwrap());
                let of_assignment = |name| assignment.and_then(|assignment| text(assignment, name));
                employee.title = of_assignment("JobTitle");
                employee.warehouse = of_assignment("Warehouse");
                employee.department = of_assignment("Department");
            }
            ("EMP", "JH") => {
                let title = text(item, "JobTitle").unwrap();
                self.employees.entry(id).or_default().jobs.insert(end_id, title);
            }
            ("EMP", "HR-CONFIDENTIAL") => {
                self.employees.entry(id).or_default().hired_on = text(item, "Data").unwrap();
            }
            ("CUSTOMER", "CUSTOMER") => {
                self.customers.insert(id, text(item, "Representative"));
            }
            ("PRODUCT", "WAREHOUSE") => {
                self.stock.insert((id, end_id), number(item, "Stock"));
            }
            _ => {}
        }
    }

    /// Returns the ids of the orders that fulfil `condition`, oldest payment first.
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

    /// Returns the stock of a product by warehouse.
    pub fn stock_of(&self, product: &str) -> BTreeMap<String, i64> {
        let of_product = self.stock.iter().filter(|((id, _), _)| id == product);
        of_product.map(|((_, warehouse), quantity)| (warehouse.clone(), *quantity)).collect()
    }

    /// Returns the sums of the orders of each representative in a quarter, such as `2026-Q1`, in a currency, largest
    /// sum first.
    pub fn ranking(&self, quarter: &str, currency: &str) -> Vec<(i64, String)> {
        let sums = self.sums().into_iter().filter(|((_, of, in_currency), _)| of == quarter && in_currency == currency);
        let mut ranking: Vec<(i64, String)> = sums.map(|((representative, ..), sum)| (sum, representative)).collect();
        ranking.sort_by(|a, b| (b.0, &a.1).cmp(&(a.0, &b.1)));
        ranking
    }

    /// Returns the sums of the orders of a representative by quarter and currency, oldest quarter first.
    pub fn totals_of(&self, representative: &str) -> Vec<(String, String, i64)> {
        let sums = self.sums().into_iter().filter(|((id, ..), _)| id == representative);
        sums.map(|((_, quarter, currency), sum)| (quarter, currency, sum)).collect()
    }

    /// Returns the sums of the orders by representative, quarter and currency. Orders that are cancelled or returned do not
    /// count, and neither do refunds. Sums of 0 are left out.
    fn sums(&self) -> BTreeMap<(String, String, String), i64> {
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
