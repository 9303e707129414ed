//! DynamoDB's operations on the engine: each takes the JSON of a request and returns the JSON of the response.

use dynoxide::actions::transact_write_items::TransactWriteItemsRequest;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::table_description::describe_table;

/// The prefixes of the engine's parse errors that DynamoDB returns as a `ValidationException`.
const VALIDATION_MARKERS: [&str; 3] = ["VALIDATION_REQUEST:", "VALIDATION_AS_READ:", "VALIDATION:"];
/// The prefixes of the engine's parse errors that DynamoDB returns as a `SerializationException`.
const SERIALIZATION_MARKERS: [&str; 2] = ["SERIALIZATION_AS_READ:", "SERIALIZATION:"];

/// Executes `operation` on `database`.
///
/// # Errors
/// The error that DynamoDB would return.
pub(crate) fn execute_operation(database: &Database, operation: &str, body: &[u8]) -> Result<String, DynoxideError> {
    match operation {
        "PutItem" => parse_and_execute(body, |request| database.put_item(request)),
        "GetItem" => parse_and_execute(body, |request| database.get_item(request)),
        "UpdateItem" => parse_and_execute(body, |request| database.update_item(request)),
        "DeleteItem" => parse_and_execute(body, |request| database.delete_item(request)),
        "Query" => parse_and_execute(body, |request| database.query(request)),
        "Scan" => parse_and_execute(body, |request| database.scan(request)),
        "BatchGetItem" => parse_and_execute(body, |request| database.batch_get_item(request)),
        "BatchWriteItem" => parse_and_execute(body, |request| database.batch_write_item(request)),
        "TransactGetItems" => parse_and_execute(body, |request| database.transact_get_items(request)),
        "TransactWriteItems" => parse_and_execute(body, |request| database.transact_write_items(request)),
        "ExecuteStatement" => parse_and_execute(body, |request| database.execute_statement(request)),
        "ExecuteTransaction" => parse_and_execute(body, |request| database.execute_transaction(request)),
        "BatchExecuteStatement" => parse_and_execute(body, |request| database.batch_execute_statement(request)),
        "CreateTable" => parse_and_execute(body, |request| database.create_table(request)),
        "DeleteTable" => parse_and_execute(body, |request| database.delete_table(request)),
        "DescribeTable" => parse_and_execute(body, |request| describe_table(database, request)),
        "ListTables" => parse_and_execute(body, |request| database.list_tables(request)),
        "UpdateTable" => parse_and_execute(body, |request| database.update_table(request)),
        "UpdateTimeToLive" => parse_and_execute(body, |request| database.update_time_to_live(request)),
        "DescribeTimeToLive" => parse_and_execute(body, |request| database.describe_time_to_live(request)),
        "TagResource" => parse_and_execute(body, |request| database.tag_resource(request)),
        "UntagResource" => parse_and_execute(body, |request| database.untag_resource(request)),
        "ListTagsOfResource" => parse_and_execute(body, |request| database.list_tags_of_resource(request)),
        "ListStreams" => parse_and_execute(body, |request| database.list_streams(request)),
        "DescribeStream" => parse_and_execute(body, |request| database.describe_stream(request)),
        "GetShardIterator" => parse_and_execute(body, |request| database.get_shard_iterator(request)),
        "GetRecords" => parse_and_execute(body, |request| database.get_records(request)),
        _ => Err(DynoxideError::ValidationException(format!("the operation {operation:?} is not supported here"))),
    }
}

/// Executes an operation like [`execute_operation`], but ignores the idempotency token of a transaction. Tokens make
/// transactions slow: for each token, the engine searches all tokens of the last ten minutes.
pub(crate) fn execute_operation_without_token(
    database: &Database,
    operation: &str,
    body: &[u8],
) -> Result<String, DynoxideError> {
    if operation != "TransactWriteItems" {
        return execute_operation(database, operation, body);
    }
    parse_and_execute(body, |mut request: TransactWriteItemsRequest| {
        request.client_request_token = None;
        database.transact_write_items(request)
    })
}

/// Parses a request, executes it with `f`, and returns the response as JSON.
pub(crate) fn parse_and_execute<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    f: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> Result<String, DynoxideError> {
    let request = serde_json::from_slice(body).map_err(|error| dynamodb_parse_error(&error))?;
    serde_json::to_string(&f(request)?).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// Converts a parse error into DynamoDB's error, without the engine's markers and without the position in the JSON.
fn dynamodb_parse_error(error: &serde_json::Error) -> DynoxideError {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&position).unwrap_or(&text);
    let after = |markers: &[&str]| markers.iter().find_map(|marker| text.strip_prefix(marker)).map(str::to_owned);
    if let Some(message) = after(&VALIDATION_MARKERS) {
        DynoxideError::ValidationException(message)
    } else if let Some(message) = after(&SERIALIZATION_MARKERS) {
        DynoxideError::SerializationException(message)
    } else if error.is_data() {
        DynoxideError::ValidationException(text.to_owned())
    } else {
        DynoxideError::SerializationException("the body must be JSON".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn execute_returns_errors_without_decoder_markers_and_positions() {
        let database = Database::memory().unwrap();
        for (body, kind, message) in [
            ("{", "SerializationException", "the body must be JSON"),
            (
                r#"{"TableName":"t","Item":{"PK":{"NULL":false}}}"#,
                "ValidationException",
                "One or more parameter values",
            ),
            (r#"{"TableName":"t"}"#, "ValidationException", ""),
            (r#"{"TableName":1,"Item":{}}"#, "Exception", ""),
        ] {
            let response = execute_operation(&database, "PutItem", body.as_bytes()).unwrap_err().to_json();
            assert!(response.contains(kind) && response.contains(message), "{body}: {response}");
            assert!(!response.contains("VALIDATION") && !response.contains("at line"), "{body}: {response}");
        }
        assert!(execute_operation(&database, "Frobnicate", b"{}").unwrap_err().to_json().contains("not supported"));
    }
}
