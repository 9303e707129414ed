//! The model of the order desk's table.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use clock::SimulatedClock;
use emulator::Engine;
use orders::PaidPeriod;
use orders_desk::OrderDesk;
use orders_table::{BucketCount, ORDERS_SCHEMA, OrdersTable, WriteOutcome};
use serde_json::Value;
use simulator::{Company, CompanySize};

use super::{Facet, ModelledTable, facet, sorted_attributes};

/// The size of the company whose items are the sample data of the model.
const TINY_COMPANY: CompanySize = CompanySize { customers: 3, employees: 3, products: 2, warehouses: 2, months: 2 };

/// An item of the table, by attribute name.
type Item = HashMap<String, AttributeValue>;

const FACETS: [Facet; 29] = [
    facet("Order", "ORDER#", "CUSTOMER#"),
    facet("Order line", "ORDER#", "PRODUCT#"),
    facet("Order's credit", "ORDER#", "EMP#"),
    facet("Order's warehouse", "ORDER#", "WAREHOUSE#"),
    facet("Customer", "CUSTOMER#", "CUSTOMER#"),
    facet("Customer's representative", "CUSTOMER#", "EMP#"),
    facet("Product", "PRODUCT#", "PRODUCT#"),
    facet("Product's name", "PRODUCT#", "PRODUCT-NAME#"),
    facet("Stock", "PRODUCT#", "WAREHOUSE#"),
    facet("Products", "PRODUCT#", "PRODUCTS"),
    facet("Movement of stock", "PRODUCT#", "MOVEMENT#"),
    facet("Movement of an order", "ORDER#", "MOVEMENT#"),
    facet("SKU", "SKU#", ""),
    facet("Warehouse", "WAREHOUSE#", "WAREHOUSE#"),
    facet("Warehouse's region", "WAREHOUSE#", "REGION#"),
    facet("Warehouses", "WAREHOUSE#", "WAREHOUSES"),
    facet("Employee", "EMP#", "EMP#"),
    facet("Employee's name", "EMP#", "NAME#"),
    facet("Job history", "EMP#", "JH#"),
    facet("Confidential", "EMP#", "HR-CONFIDENTIAL"),
    facet("Quarter's total", "EMP#", "20"),
    facet("Employee's place", "EMP#", ""),
    facet("Region", "REGION#", ""),
    facet("Country", "COUNTRY#", ""),
    facet("Location", "LOCATION#", ""),
    facet("Job", "JOB#", ""),
    facet("Department", "DEPT#", ""),
    facet("Fill task", "FILLS", ""),
    facet("Settings", "SETTINGS", ""),
];

/// Asserts that a write was done, and not refused.
fn assert_done(written: WriteOutcome) {
    assert_eq!(written, WriteOutcome::Done);
}

/// Returns all items of the orders table of a tiny company with some orders.
async fn sample_items() -> Vec<Item> {
    let engine = Engine::in_memory();
    let table = OrdersTable::new(engine.client(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    let mut company = Company::new(TINY_COMPANY, 11);
    let now: DateTime<Utc> = "2025-03-01T06:00:00Z".parse().unwrap();
    let desk = OrderDesk::new(
        table.clone(),
        table.get_or_store_buckets(BucketCount::default()).await.unwrap(),
        Arc::new(SimulatedClock::new(now, 1)),
    );
    for region in &company.regions {
        assert_done(table.put_entity(region).await.unwrap());
    }
    for country in &company.countries {
        assert_done(table.put_entity(country).await.unwrap());
    }
    assert_done(table.put_entity(&company.locations[0]).await.unwrap());
    for department in &company.departments {
        assert_done(table.put_entity(department).await.unwrap());
    }
    for job in &company.jobs {
        assert_done(table.put_entity(job).await.unwrap());
    }
    for warehouse in &company.warehouses {
        assert_done(table.create_warehouse(warehouse).await.unwrap());
    }
    for (employee, assignment, confidential) in &company.employees {
        assert_done(table.hire_employee(employee, assignment, confidential).await.unwrap());
    }
    for product in &company.products {
        assert_done(table.create_product(product).await.unwrap());
        assert_done(desk.set_initial_stock(&product.id, &company.warehouses[0].id, 4).await.unwrap());
    }
    let sku = company.skus[0].0.clone();
    assert_done(table.set_lines_of_sku(&sku, &company.skus[0].1).await.unwrap());
    let (first, address) = company.customers[0].clone();
    desk.set_shipping_address(&first, address.unwrap()).await.unwrap();
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    let of_first: Vec<PaidPeriod> = company.paid.iter().filter(|paid| paid.account == first).cloned().collect();
    let of_others = company.paid.iter().find(|paid| paid.account != first).cloned();
    for paid in of_first.iter().chain(&of_others) {
        desk.place_order(paid).await.unwrap();
    }
    let delivery = "01JZXCVBNM0123456789ABCDEF".parse().unwrap();
    desk.receive_stock(&company.products[1].id, &company.warehouses[1].id, 1, delivery).await.unwrap();
    desk.table.mark_without_products_reported(&company.skus.last().unwrap().0).await.unwrap();
    let scan = engine.client().scan().table_name("dueday-orders").consistent_read(true).into_paginator().items().send();
    scan.collect::<Result<Vec<Item>, _>>().await.unwrap()
}

/// Returns the string attribute `name` of `item`.
fn text<'a>(item: &'a Item, name: &str) -> &'a str {
    item[name].as_s().unwrap()
}

/// Adds the keys of the entities to which the attributes `members` refer to `found`. For example, the region of an
/// address refers to the key `REGION#eu`.
fn add_referenced_entities(members: &Item, found: &mut BTreeSet<String>) {
    for (name, value) in members {
        let prefix = match name.as_str() {
            "Region" => "REGION#",
            "Country" => "COUNTRY#",
            "Job" => "JOB#",
            "Department" => "DEPT#",
            "Warehouse" => "WAREHOUSE#",
            "Representative" => "EMP#",
            "Customer" => "CUSTOMER#",
            _ => "",
        };
        match value {
            AttributeValue::S(id) if !prefix.is_empty() => found.extend([format!("{prefix}{id}")]),
            AttributeValue::M(members) => add_referenced_entities(members, found),
            _ => {}
        }
    }
}

#[tokio::test]
async fn every_entity_to_which_a_sample_refers_is_a_sample() {
    let items = sample_items().await;
    let entities: BTreeSet<String> = items.iter().map(|item| text(item, "PK").to_owned()).collect();
    let mut referenced = BTreeSet::new();
    for item in &items {
        add_referenced_entities(item, &mut referenced);
        // An item that relates an entity to another entity has the partition key of the other entity as its sort key.
        let prefix = text(item, "SK").split_inclusive('#').next().unwrap();
        if entities.iter().any(|entity| prefix.ends_with('#') && entity.starts_with(prefix)) {
            referenced.insert(text(item, "SK").to_owned());
        }
        // The sort key of a location contains the name of its country, and not the id of the country.
        if let Some(name) = text(item, "SK").strip_prefix("COUNTRY-NAME#") {
            let is_name = |of: &&Item| text(of, "PK").starts_with("COUNTRY#") && text(of, "SK").ends_with(name);
            assert!(items.iter().any(|of| is_name(&of)), "no country has the name {name}");
        }
    }
    let missing: Vec<&String> = referenced.difference(&entities).collect();
    assert!(referenced.len() > 10 && missing.is_empty(), "{missing:?}");
}

/// Returns `item` in the JSON format of DynamoDB's API.
fn to_json(item: Item) -> Value {
    serde_json::to_value(serde_dynamo::Item::from(item)).unwrap()
}

#[tokio::test]
async fn workbench_model_of_orders_is_generated_from_the_schema_and_items_of_a_tiny_company() {
    let table = ModelledTable {
        model_name: "Dueday's order desk",
        description: "Orders of paid periods: an adjacency list with an overloaded and a write-sharded index",
        table_name: "dueday-orders",
        schema: &ORDERS_SCHEMA,
        facets: &FACETS,
        most_samples: usize::MAX,
    };
    let items = sample_items().await.into_iter().map(to_json).map(sorted_attributes);
    table.check_file("nosql-workbench-orders.json", items.collect());
}
