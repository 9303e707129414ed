//! Generates the order desk's model for NoSQL Workbench from the schema and from items that the code writes, and
//! compares it with the stored file. `UPDATE_EXAMPLES=1` updates the file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use clock::SimulatedClock;
use emulator::Engine;
use orders::PaidPeriod;
use orders_desk::OrderDesk;
use orders_table::{Buckets, ORDERS_SCHEMA, OrdersTable, WriteOutcome};
use serde_json::{Value, json};
use simulator::{Company, CompanySize};

/// The path of the stored model.
const MODEL_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/nosql-workbench-orders.json");
/// The size of the company whose items are the sample data of the model.
const TINY_COMPANY: CompanySize = CompanySize { customers: 3, employees: 3, products: 2, warehouses: 2, months: 2 };

/// An item of the table, by attribute name.
type Item = HashMap<String, AttributeValue>;

/// The facets (the groups in which NoSQL Workbench shows the items): name, prefix of the partition key, and prefix of
/// the sort key. An item belongs to the first matching facet.
const FACETS: [(&str, &str, &str); 29] = [
    ("Order", "ORDER#", "CUSTOMER#"),
    ("Order line", "ORDER#", "PRODUCT#"),
    ("Order's credit", "ORDER#", "EMP#"),
    ("Order's warehouse", "ORDER#", "WAREHOUSE#"),
    ("Customer", "CUSTOMER#", "CUSTOMER#"),
    ("Customer's representative", "CUSTOMER#", "EMP#"),
    ("Product", "PRODUCT#", "PRODUCT#"),
    ("Product's name", "PRODUCT#", "PRODUCT-NAME#"),
    ("Stock", "PRODUCT#", "WAREHOUSE#"),
    ("Products", "PRODUCT#", "PRODUCTS"),
    ("Movement of stock", "PRODUCT#", "MOVEMENT#"),
    ("Movement of an order", "ORDER#", "MOVEMENT#"),
    ("SKU", "SKU#", ""),
    ("Warehouse", "WAREHOUSE#", "WAREHOUSE#"),
    ("Warehouse's region", "WAREHOUSE#", "REGION#"),
    ("Warehouses", "WAREHOUSE#", "WAREHOUSES"),
    ("Employee", "EMP#", "EMP#"),
    ("Employee's name", "EMP#", "NAME#"),
    ("Job history", "EMP#", "JH#"),
    ("Confidential", "EMP#", "HR-CONFIDENTIAL"),
    ("Quarter's total", "EMP#", "20"),
    ("Employee's place", "EMP#", ""),
    ("Region", "REGION#", ""),
    ("Country", "COUNTRY#", ""),
    ("Location", "LOCATION#", ""),
    ("Job", "JOB#", ""),
    ("Department", "DEPT#", ""),
    ("Fill task", "FILLS", ""),
    ("Settings", "SETTINGS", ""),
];

/// Asserts that a write was done, and not refused.
fn assert_done(written: WriteOutcome) {
    assert_eq!(written, WriteOutcome::Done);
}

/// Returns all items of the orders table of a tiny company with some orders.
async fn sample_items() -> Vec<Item> {
    let engine = Engine::memory();
    let table = OrdersTable::new(engine.client(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    let mut company = Company::new(TINY_COMPANY, 11);
    let now: DateTime<Utc> = "2025-03-01T06:00:00Z".parse().unwrap();
    let desk = OrderDesk::new(
        table.clone(),
        table.get_or_store_buckets(Buckets::default()).await.unwrap(),
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
        assert_done(table.hire(employee, assignment, confidential).await.unwrap());
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
        desk.place(paid).await.unwrap();
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

/// Converts an attribute value into DynamoDB JSON, such as `{"S": "text"}`.
fn dynamodb_json(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::Bool(on) => json!({ "BOOL": on }),
        AttributeValue::M(members) => {
            let members: BTreeMap<_, _> = members.iter().map(|(name, value)| (name, dynamodb_json(value))).collect();
            json!({ "M": members })
        }
        AttributeValue::L(members) => json!({ "L": members.iter().map(dynamodb_json).collect::<Vec<_>>() }),
        other => panic!("{other:?}"),
    }
}

/// Returns the DynamoDB type of `value`, such as `S`.
fn dynamodb_type(value: &AttributeValue) -> String {
    dynamodb_json(value).as_object().unwrap().keys().next().unwrap().clone()
}

/// Returns the description of the keys of a table or an index in the model.
fn key_attributes(of: orders_table::KeySchema) -> Value {
    let key = |(name, kind): (&str, &str)| json!({ "AttributeName": name, "AttributeType": kind });
    json!({ "PartitionKey": key(of.partition), "SortKey": key(of.sort) })
}

/// Returns the model with `items` as its sample data.
fn workbench_model(mut items: Vec<Item>) -> Value {
    items.sort_by_key(|item| (text(item, "PK").to_owned(), text(item, "SK").to_owned()));
    let mut types = BTreeMap::new();
    for (name, value) in items.iter().flatten().filter(|(name, _)| !["PK", "SK"].contains(&name.as_str())) {
        let known = types.insert(name.clone(), dynamodb_type(value));
        assert!(known.is_none_or(|known| known == dynamodb_type(value)), "{name} has two types");
    }
    let is_in = |item: &Item, (_, pk, sk): &(&str, &str, &str)| {
        text(item, "PK").starts_with(pk) && text(item, "SK").starts_with(sk)
    };
    let mut facets = Vec::new();
    for (place, facet) in FACETS.iter().enumerate() {
        let of: Vec<&Item> = items
            .iter()
            .filter(|item| is_in(item, facet) && !FACETS[..place].iter().any(|before| is_in(item, before)))
            .collect();
        assert!(!of.is_empty(), "no item is in {facet:?}");
        let shown: BTreeSet<&String> =
            of.iter().flat_map(|item| item.keys()).filter(|name| !["PK", "SK"].contains(&name.as_str())).collect();
        let data: Vec<BTreeMap<&String, Value>> =
            of.iter().map(|item| item.iter().map(|(name, value)| (name, dynamodb_json(value))).collect()).collect();
        facets.push(json!({
            "FacetName": facet.0,
            "KeyAttributeAlias": { "PartitionKeyAlias": facet.1, "SortKeyAlias": if facet.2.is_empty() { "SK" } else { facet.2 } },
            "TableData": data,
            "NonKeyAttributes": shown,
            "DataAccess": { "MySql": {} },
        }));
    }
    let in_facets: usize = facets.iter().map(|facet| facet["TableData"].as_array().unwrap().len()).sum();
    assert_eq!(in_facets, items.len(), "an item is in no facet");
    let indexes = ORDERS_SCHEMA.indexes.iter().map(|index| {
        json!({
            "IndexName": index.name,
            "KeyAttributes": key_attributes(index.keys),
            "Projection": { "ProjectionType": "ALL" },
        })
    });
    let types = types.into_iter().map(|(name, kind)| json!({ "AttributeName": name, "AttributeType": kind }));
    json!({
        "ModelName": "Dueday's order desk",
        "ModelMetadata": {
            "Author": "",
            "DateCreated": "Nov 22, 2026, 06:00 AM",
            "DateLastModified": "Nov 22, 2026, 06:00 AM",
            "Description": "Orders of paid periods: an adjacency list with an overloaded and a write-sharded index",
            "AWSService": "Amazon DynamoDB",
            "Version": "3.0",
        },
        "DataModel": [{
            "TableName": "dueday-orders",
            "KeyAttributes": key_attributes(ORDERS_SCHEMA.keys),
            "NonKeyAttributes": types.collect::<Vec<_>>(),
            "TableFacets": facets,
            "GlobalSecondaryIndexes": indexes.collect::<Vec<_>>(),
            "DataAccess": { "MySql": {} },
            "BillingMode": "PAY_PER_REQUEST",
        }],
    })
}

#[tokio::test]
async fn workbench_model_of_orders_matches_the_schema_and_its_samples_match_the_code() {
    let model = serde_json::to_string_pretty(&workbench_model(sample_items().await)).unwrap() + "\n";
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        std::fs::write(MODEL_PATH, &model).unwrap();
    }
    let kept = std::fs::read_to_string(MODEL_PATH).unwrap_or_default();
    assert!(
        kept == model,
        "docs/nosql-workbench-orders.json does not match the code: UPDATE_EXAMPLES=1 updates the file"
    );
}
