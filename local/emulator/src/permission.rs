//! The IAM permissions that requests to DynamoDB need.

use serde_json::Value;

/// A permission that IAM must grant for a request: an action on the table or on one of its indexes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Permission {
    /// The name of the table.
    pub table: String,
    /// The action, such as `dynamodb:GetItem`.
    pub action: String,
    /// The index; `None` for the table itself.
    pub index: Option<String>,
    /// The partition key that IAM compares with `dynamodb:LeadingKeys`; `None` if the request contains no partition
    /// key, such as a scan.
    pub partition: Option<String>,
}

/// Returns the permissions that a request needs. A transaction needs the permission of each of its writes ("IAM for
/// DynamoDB transactions" in the DynamoDB developer guide). A BatchGetItem request needs the permission for each of its keys.
pub(crate) fn needed_permissions(operation: &str, request: &Value) -> Vec<Permission> {
    if operation == "BatchGetItem" {
        let tables = request["RequestItems"].as_object().into_iter().flatten();
        let keys =
            tables.flat_map(|(table, read)| read["Keys"].as_array().into_iter().flatten().map(move |key| (table, key)));
        let permission = |(table, key): (&String, &Value)| Permission {
            table: table.clone(),
            action: "dynamodb:BatchGetItem".to_owned(),
            index: None,
            partition: key["PK"]["S"].as_str().map(str::to_owned),
        };
        return keys.map(permission).collect();
    }
    if operation != "TransactWriteItems" {
        let index = request.get("IndexName").and_then(Value::as_str).map(str::to_owned);
        let action = format!("dynamodb:{operation}");
        return vec![Permission {
            table: requested_table_name(request),
            action,
            index,
            partition: requested_partition_key(request),
        }];
    }
    let writes = request["TransactItems"].as_array().into_iter().flatten().filter_map(Value::as_object).flatten();
    let permissions = writes.map(|(kind, write)| Permission {
        table: requested_table_name(write),
        action: match kind.as_str() {
            "ConditionCheck" => "dynamodb:ConditionCheckItem".to_owned(),
            kind => format!("dynamodb:{kind}Item"),
        },
        index: None,
        partition: requested_partition_key(write),
    });
    permissions.collect()
}

/// Returns the name of the table of `request`, which may also be one write of a transaction.
fn requested_table_name(request: &Value) -> String {
    request["TableName"].as_str().unwrap_or_default().to_owned()
}

/// Returns the partition key in the key, the item or the key condition of `request`, which may also be one write of a
/// transaction.
fn requested_partition_key(request: &Value) -> Option<String> {
    let of_item = request["Key"]["PK"]["S"].as_str().or(request["Item"]["PK"]["S"].as_str());
    let of_condition = || {
        let (_, after) = request["KeyConditionExpression"].as_str()?.split_once('=')?;
        request["ExpressionAttributeValues"][after.split_whitespace().next()?]["S"].as_str()
    };
    of_item.or_else(of_condition).map(str::to_owned)
}
