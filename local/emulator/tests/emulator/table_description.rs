//! Tests of DescribeTable on the embedded engine: the description is that of the engine, but nothing is counted.

use dynoxide::Database;
use dynoxide::actions::describe_table::DescribeTableRequest;
use emulator::Engine;
use serde_json::{Value, json};

/// The fields for which the engine counts the items of the table or of an index.
const COUNTS: [&str; 3] = ["ItemCount", "TableSizeBytes", "IndexSizeBytes"];

/// A table with the given further settings.
fn table(name: &str, further: &Value) -> Value {
    let mut request = json!({
        "TableName": name,
        "KeySchema": [{ "AttributeName": "PK", "KeyType": "HASH" }, { "AttributeName": "SK", "KeyType": "RANGE" }],
        "AttributeDefinitions": [
            { "AttributeName": "PK", "AttributeType": "S" },
            { "AttributeName": "SK", "AttributeType": "S" },
        ],
    });
    for (setting, value) in further.as_object().unwrap() {
        request[setting] = value.clone();
    }
    request
}

/// Returns the description of the table `name` by the engine itself, which counts.
fn counted_description(database: &Database, name: &str) -> Value {
    let described = database.describe_table(DescribeTableRequest { table_name: name.to_owned() }).unwrap();
    serde_json::to_value(&described).unwrap()
}

/// Removes the counts from `description`.
fn without_counts(mut description: Value) -> Value {
    let table = description["Table"].as_object_mut().unwrap();
    COUNTS.iter().for_each(|count| drop(table.remove(*count)));
    for index in table.get_mut("GlobalSecondaryIndexes").into_iter().flat_map(|all| all.as_array_mut().unwrap()) {
        COUNTS.iter().for_each(|count| drop(index.as_object_mut().unwrap().remove(*count)));
    }
    description
}

#[test]
fn table_is_described_like_by_the_engine_but_without_counts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.sqlite");
    let engine = Engine::open(&file).unwrap();
    let index = json!({
        "IndexName": "GSI-1",
        "KeySchema": [{ "AttributeName": "SK", "KeyType": "HASH" }, { "AttributeName": "PK", "KeyType": "RANGE" }],
        "Projection": { "ProjectionType": "INCLUDE", "NonKeyAttributes": ["SKU"] },
    });
    let stream = json!({ "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" });
    let tables = [
        ("plain", json!({ "BillingMode": "PAY_PER_REQUEST" })),
        ("indexed", json!({ "BillingMode": "PAY_PER_REQUEST", "GlobalSecondaryIndexes": [index] })),
        ("streamed", json!({ "BillingMode": "PAY_PER_REQUEST", "StreamSpecification": stream })),
    ];
    for (name, further) in &tables {
        engine.execute("CreateTable", &table(name, further)).unwrap();
        let item = json!({ "TableName": name, "Item": { "PK": { "S": "a" }, "SK": { "S": "b" } } });
        engine.execute("PutItem", &item).unwrap();
    }
    let database = Database::new(file.to_str().unwrap()).unwrap();
    for (name, _) in tables {
        let described = engine.execute("DescribeTable", &json!({ "TableName": name })).unwrap();
        let counted = counted_description(&database, name);
        assert_eq!(counted["Table"]["ItemCount"], 1, "the engine counts");
        assert_eq!(described, without_counts(counted), "{name}");
    }
}

#[test]
fn table_with_features_that_dueday_does_not_use_is_described_by_the_engine() {
    let engine = Engine::in_memory();
    let throughput = json!({ "ReadCapacityUnits": 5, "WriteCapacityUnits": 5 });
    engine.execute("CreateTable", &table("provisioned", &json!({ "ProvisionedThroughput": throughput }))).unwrap();
    let described = engine.execute("DescribeTable", &json!({ "TableName": "provisioned" })).unwrap();
    assert_eq!(described["Table"]["ItemCount"], 0);
    assert_eq!(described["Table"]["ProvisionedThroughput"]["ReadCapacityUnits"], 5);
    let missing = engine.execute("DescribeTable", &json!({ "TableName": "missing" })).unwrap_err();
    assert!(missing.contains("ResourceNotFoundException"), "{missing}");
}
