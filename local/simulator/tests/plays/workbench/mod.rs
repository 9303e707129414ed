//! Generates the models for NoSQL Workbench from the schemas of the tables and from items that the code writes.
//! `UPDATE_EXAMPLES=1` writes the files.

mod orders;
mod payments;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dynamo::{IndexSchema, KeySchema, TableSchema};
use serde_json::{Map, Value, json};
use testkit::check_generated_file;

/// A facet: a group in which NoSQL Workbench shows items. An item belongs to the first facet whose prefixes its keys
/// have.
#[derive(Clone, Copy, Debug)]
struct Facet {
    name: &'static str,
    partition_prefix: &'static str,
    sort_prefix: &'static str,
}

/// Creates a facet of the items whose keys have these prefixes.
const fn facet(name: &'static str, partition_prefix: &'static str, sort_prefix: &'static str) -> Facet {
    Facet { name, partition_prefix, sort_prefix }
}

impl Facet {
    /// Returns whether the keys of `item` have the prefixes of this facet.
    fn matches(&self, item: &Attributes) -> bool {
        key_text(item, "PK").starts_with(self.partition_prefix) && key_text(item, "SK").starts_with(self.sort_prefix)
    }
}

/// The attributes of an item in the JSON format of DynamoDB's API, such as `{"S": "text"}`, by name.
type Attributes = BTreeMap<String, Value>;

/// Returns the attribute `name` of `item`: one of the two keys, which are strings.
fn key_text<'a>(item: &'a Attributes, name: &str) -> &'a str {
    item[name]["S"].as_str().unwrap()
}

/// Returns the attributes of `item` other than its keys.
fn non_key_attributes(item: &Attributes) -> impl Iterator<Item = (&String, &Value)> {
    item.iter().filter(|(name, _)| !["PK", "SK"].contains(&name.as_str()))
}

/// A table to be described by a model.
struct ModelledTable {
    model_name: &'static str,
    description: &'static str,
    table_name: &'static str,
    schema: &'static TableSchema<2>,
    facets: &'static [Facet],
    /// The largest number of sample items in each facet.
    most_samples: usize,
}

/// Returns the types of all attributes that are no keys, by name.
fn attribute_types(items: &[Attributes]) -> BTreeMap<&String, &String> {
    let mut types = BTreeMap::new();
    for (name, value) in items.iter().flat_map(non_key_attributes) {
        let kind = value.as_object().unwrap().keys().next().unwrap();
        let known = types.insert(name, kind);
        assert!(known.is_none_or(|known| known == kind), "{name} has two types");
    }
    types
}

/// Returns the description of the keys of a table or of an index.
fn key_attributes(of: KeySchema) -> Value {
    let key = |(name, kind): (&str, &str)| json!({ "AttributeName": name, "AttributeType": kind });
    json!({ "PartitionKey": key(of.partition), "SortKey": key(of.sort) })
}

/// Returns the description of an index.
fn index_description(index: &IndexSchema) -> Value {
    let projection = match index.attributes {
        Some(attributes) => json!({ "ProjectionType": "INCLUDE", "NonKeyAttributes": attributes }),
        None => json!({ "ProjectionType": "ALL" }),
    };
    json!({ "IndexName": index.name, "KeyAttributes": key_attributes(index.keys), "Projection": projection })
}

/// Returns the description of `facet`, with the first of its items, `of`, as sample data.
fn facet_description(facet: &Facet, of: &[&Attributes], most_samples: usize) -> Value {
    let shown: BTreeSet<&String> = of.iter().flat_map(|item| non_key_attributes(item)).map(|(name, _)| name).collect();
    let sort_key_alias = if facet.sort_prefix.is_empty() { "SK" } else { facet.sort_prefix };
    json!({
        "FacetName": facet.name,
        "KeyAttributeAlias": { "PartitionKeyAlias": facet.partition_prefix, "SortKeyAlias": sort_key_alias },
        "TableData": of.iter().take(most_samples).collect::<Vec<_>>(),
        "NonKeyAttributes": shown,
        "DataAccess": { "MySql": {} },
    })
}

impl ModelledTable {
    /// Returns the model with `items` as its sample data, in the format 3.0 of NoSQL Workbench.
    fn to_model(&self, items: &[Attributes]) -> Value {
        let mut of_facets: Vec<Vec<&Attributes>> = vec![Vec::new(); self.facets.len()];
        let mut keys_in_no_facet = BTreeSet::new();
        for item in items {
            match self.facets.iter().position(|facet| facet.matches(item)) {
                Some(place) => of_facets[place].push(item),
                None => drop(keys_in_no_facet.insert([key_text(item, "PK"), key_text(item, "SK")])),
            }
        }
        assert!(keys_in_no_facet.is_empty(), "items are in no facet: {keys_in_no_facet:#?}");
        let facets = self.facets.iter().zip(&of_facets).map(|(facet, of)| {
            assert!(!of.is_empty(), "no item is in {facet:?}");
            facet_description(facet, of, self.most_samples)
        });
        let types = attribute_types(items);
        let types = types.iter().map(|(name, kind)| json!({ "AttributeName": name, "AttributeType": kind }));
        json!({
            "ModelName": self.model_name,
            "ModelMetadata": {
                "Author": "",
                "DateCreated": "Nov 21, 2026, 06:00 AM",
                "DateLastModified": "Nov 21, 2026, 06:00 AM",
                "Description": format!(
                    "{}. Generated by `UPDATE_EXAMPLES=1 cargo test --test plays workbench`",
                    self.description
                ),
                "AWSService": "Amazon DynamoDB",
                "Version": "3.0",
            },
            "DataModel": [{
                "TableName": self.table_name,
                "KeyAttributes": key_attributes(self.schema.keys),
                "NonKeyAttributes": types.collect::<Vec<_>>(),
                "TableFacets": facets.collect::<Vec<_>>(),
                "GlobalSecondaryIndexes": self.schema.indexes.iter().map(index_description).collect::<Vec<_>>(),
                "DataAccess": { "MySql": {} },
                "BillingMode": "PAY_PER_REQUEST",
            }],
        })
    }

    /// Compares the file `name` in `docs` with the model whose sample data are `items`, or writes it.
    fn check_file(&self, name: &str, mut items: Vec<Attributes>) {
        items.sort_by_key(|item| (key_text(item, "PK").to_owned(), key_text(item, "SK").to_owned()));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        let model = serde_json::to_string_pretty(&self.to_model(&items)).unwrap();
        check_generated_file(&path, &(model + "\n"));
    }
}

/// Returns the attributes of an item that `serde_dynamo` has converted to the JSON format of DynamoDB's API.
fn sorted_attributes(item: Value) -> Attributes {
    let members: Map<String, Value> = serde_json::from_value(item).unwrap();
    members.into_iter().map(|(name, value)| (name, sorted_value(value))).collect()
}

/// Returns `value` with the members of all its objects in alphabetical order.
fn sorted_value(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<String, Value> =
                members.into_iter().map(|(name, value)| (name, sorted_value(value))).collect();
            json!(members)
        }
        Value::Array(values) => values.into_iter().map(sorted_value).collect(),
        other => other,
    }
}
