//! DescribeTable without counting. The engine counts all items of the table and of each index for each request, which
//! takes seconds for a large table. DynamoDB updates these numbers only about every six hours, so no caller needs exact
//! ones.

use dynoxide::actions::describe_table::DescribeTableRequest;
use dynoxide::storage::TableMetadata;
use dynoxide::{Database, DynoxideError, streams};
use serde_json::{Value, json};

/// The billing mode of the tables that this module describes.
const ON_DEMAND: &str = "PAY_PER_REQUEST";

/// Returns the response to DescribeTable like the engine, but without `ItemCount`, `TableSizeBytes` and
/// `IndexSizeBytes`. A table with features that Dueday does not use is described by the engine, with these numbers.
///
/// # Errors
/// The error that DynamoDB would return, for example because the table does not exist.
pub(crate) fn describe_table(database: &Database, request: DescribeTableRequest) -> Result<Value, DynoxideError> {
    match database.get_table_metadata(&request.table_name)?.as_ref().and_then(describe_supported_table) {
        Some(description) => Ok(json!({ "Table": description })),
        None => response_to_json(&database.describe_table(request)?),
    }
}

/// Returns the description of a table from its `metadata`; `None` if the table has features that Dueday does not use.
fn describe_supported_table(metadata: &TableMetadata) -> Option<Value> {
    let is_simple = metadata.lsi_definitions.is_none()
        && metadata.vector_index_definitions.is_none()
        && metadata.sse_specification.is_none()
        && metadata.provisioned_throughput.is_none()
        && metadata.on_demand_throughput.is_none()
        && metadata.table_class.is_none()
        && metadata.billing_mode.as_deref() == Some(ON_DEMAND);
    if !is_simple {
        return None;
    }
    let name = &metadata.table_name;
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    let mut description = json!({
        "TableName": name,
        "TableStatus": metadata.table_status,
        "TableArn": streams::table_arn(name),
        "TableId": metadata.table_id.as_ref()?,
        "CreationDateTime": metadata.created_at as f64,
        "KeySchema": parsed(&metadata.key_schema)?,
        "AttributeDefinitions": parsed(&metadata.attribute_definitions)?,
        "BillingModeSummary": { "BillingMode": ON_DEMAND },
        "TableThroughputModeSummary": { "TableThroughputMode": ON_DEMAND },
        "ProvisionedThroughput": provisioned_throughput_of_on_demand_table(),
        "DeletionProtectionEnabled": metadata.deletion_protection_enabled,
    });
    if let Some(definitions) = &metadata.gsi_definitions {
        let indexes = parsed(definitions)?;
        let described = indexes.as_array()?.iter().map(|index| describe_index(name, index));
        description["GlobalSecondaryIndexes"] = described.collect::<Option<Value>>()?;
    }
    if let (true, Some(label)) = (metadata.stream_enabled, &metadata.stream_label) {
        description["StreamSpecification"] =
            json!({ "StreamEnabled": true, "StreamViewType": metadata.stream_view_type });
        description["LatestStreamArn"] = streams::stream_arn(name, label).into();
        description["LatestStreamLabel"] = label.as_str().into();
    }
    Some(description)
}

/// Returns the description of `index`, the definition of an index of the table `table`.
fn describe_index(table: &str, index: &Value) -> Option<Value> {
    let name = index["IndexName"].as_str()?;
    Some(json!({
        "IndexName": name,
        "IndexArn": streams::index_arn(table, name),
        "IndexStatus": "ACTIVE",
        "KeySchema": index["KeySchema"],
        "Projection": index["Projection"],
        "ProvisionedThroughput": provisioned_throughput_of_on_demand_table(),
    }))
}

/// Returns the provisioned throughput of an on-demand table.
fn provisioned_throughput_of_on_demand_table() -> Value {
    json!({ "ReadCapacityUnits": 0, "WriteCapacityUnits": 0, "NumberOfDecreasesToday": 0 })
}

/// Converts a response of the engine to JSON.
fn response_to_json(response: &impl serde::Serialize) -> Result<Value, DynoxideError> {
    serde_json::to_value(response).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}
