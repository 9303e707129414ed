//! Checks that the model for NoSQL Workbench matches the schema, and that its sample data matches the items that the
//! code writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use aws_sdk_dynamodb::types::AttributeValue;
use billing::Account;
use chrono::DateTime;
use emulator::Engine;
use serde_json::Value;
use store::{KeySchema, Paging, SCHEMA, Table, TableError};

/// Returns the model in `docs/nosql-workbench.json`.
fn stored_model() -> Value {
    serde_json::from_str(include_str!("../../../../docs/nosql-workbench.json")).unwrap()
}

/// Returns the strings of a JSON list.
fn json_strings(of: &Value) -> BTreeSet<String> {
    of.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Returns the partition key and the sort key of a table or an index of the model, each as `name type`.
fn key_attributes(of: &Value) -> [String; 2] {
    ["PartitionKey", "SortKey"].map(|key| {
        let key = &of["KeyAttributes"][key];
        format!("{} {}", key["AttributeName"].as_str().unwrap(), key["AttributeType"].as_str().unwrap())
    })
}

/// Converts DynamoDB JSON, such as `{"S": "text"}`, into an attribute value.
fn to_attribute_value(value: &Value) -> AttributeValue {
    let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "S" => AttributeValue::S(value.as_str().unwrap().to_owned()),
        "N" => AttributeValue::N(value.as_str().unwrap().to_owned()),
        "M" => {
            let members = value.as_object().unwrap().iter();
            AttributeValue::M(members.map(|(name, value)| (name.clone(), to_attribute_value(value))).collect())
        }
        other => panic!("{other}"),
    }
}

#[test]
fn workbench_model_describes_the_table_that_the_code_creates() {
    let model = stored_model();
    assert_eq!(
        (&model["ModelMetadata"]["Version"], &model["ModelMetadata"]["AWSService"]),
        (&"3.0".into(), &"Amazon DynamoDB".into())
    );
    let table = &model["DataModel"][0];
    let written = |of: KeySchema| [of.partition, of.sort].map(|(name, kind)| format!("{name} {kind}"));
    assert_eq!(key_attributes(table), written(SCHEMA.keys));
    assert_eq!(table["BillingMode"], "PAY_PER_REQUEST");
    let indexes = table["GlobalSecondaryIndexes"].as_array().unwrap();
    assert_eq!(indexes.len(), SCHEMA.indexes.len());
    for (modelled, index) in indexes.iter().zip(&SCHEMA.indexes) {
        assert_eq!(modelled["IndexName"], index.name);
        assert_eq!(key_attributes(modelled), written(index.keys));
        assert_eq!(modelled["Projection"]["ProjectionType"], "INCLUDE");
        let projected: BTreeSet<String> = index.attributes.unwrap().iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(json_strings(&modelled["Projection"]["NonKeyAttributes"]), projected);
    }
}

#[tokio::test]
async fn workbench_model_samples_match_the_items_that_the_code_writes() {
    let model = stored_model();
    let modelled = &model["DataModel"][0];
    let table = Table::new(Engine::memory().client(), "dueday");
    table.create_if_absent().await.unwrap();
    let types: BTreeMap<&str, &str> = modelled["NonKeyAttributes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["AttributeName"].as_str().unwrap(), a["AttributeType"].as_str().unwrap()))
        .chain([("PK", "S"), ("SK", "S")])
        .collect();
    let mut used = BTreeSet::new();
    for facet in modelled["TableFacets"].as_array().unwrap() {
        let shown = json_strings(&facet["NonKeyAttributes"]);
        for item in facet["TableData"].as_array().unwrap() {
            for (name, value) in item.as_object().unwrap() {
                assert_eq!(value.as_object().unwrap().keys().next().unwrap(), types[name.as_str()], "{name}");
                assert!(["PK", "SK"].contains(&name.as_str()) || shown.contains(name), "{name} is not in its facet");
                used.insert(name.clone());
            }
            let item: HashMap<String, AttributeValue> = item
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| (name.clone(), to_attribute_value(value)))
                .collect();
            table.client().put_item().table_name("dueday").set_item(Some(item)).send().await.unwrap();
        }
        used.extend(shown);
    }
    assert!(types.keys().all(|name| used.contains(*name)), "an attribute is in no facet");
    // Read the samples, write them with the code to another table, and compare the items.
    let written = Table::new(Engine::memory().client(), "dueday");
    written.create_if_absent().await.unwrap();
    let mut accounts = Vec::new();
    let each = |account: Result<Account, TableError>| {
        accounts.push(account.unwrap());
        ControlFlow::Continue(())
    };
    table.scan_accounts(each).await.unwrap();
    let (mut subscriptions, mut receipts) = (0, 0);
    for account in &accounts {
        written.put_account(account).await.unwrap();
        for subscription in table.get_subscriptions_by_account(&account.id, &Paging::all()).await.unwrap().items {
            written.create_subscription(&subscription, None).await.unwrap();
            subscriptions += 1;
        }
        let long_ago = DateTime::UNIX_EPOCH;
        receipts += table.get_receipts_by_account(&account.id, &Paging::all(), long_ago).await.unwrap().items.len();
    }
    let samples = table.scan().await.unwrap();
    for item in written.scan().await.unwrap() {
        assert!(samples.contains(&item), "{item:?}");
    }
    assert_eq!(
        samples.len(),
        accounts.len() + 2 * subscriptions + receipts,
        "every sample is an account, a subscription, its code or a receipt"
    );
    assert!(accounts.len() >= 2 && subscriptions >= 4 && receipts >= 6);
}
