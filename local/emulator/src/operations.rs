//! DynamoDB's operations on the engine: a request's JSON in, its answer's JSON out.

use dynoxide::actions::transact_write_items::TransactWriteItemsRequest;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Before the words for whoever asked, the engine's decoder says by one of these which error they belong to.
const INVALID: [&str; 3] = ["VALIDATION_REQUEST:", "VALIDATION_AS_READ:", "VALIDATION:"];
const UNREADABLE: [&str; 2] = ["SERIALIZATION_AS_READ:", "SERIALIZATION:"];

/// Carries out `operation` on `database`.
///
/// # Errors
/// As DynamoDB answers them.
pub(crate) fn carry_out(database: &Database, operation: &str, body: &[u8]) -> Result<String, DynoxideError> {
    match operation {
        "PutItem" => call(body, |request| database.put_item(request)),
        "GetItem" => call(body, |request| database.get_item(request)),
        "UpdateItem" => call(body, |request| database.update_item(request)),
        "DeleteItem" => call(body, |request| database.delete_item(request)),
        "Query" => call(body, |request| database.query(request)),
        "Scan" => call(body, |request| database.scan(request)),
        "BatchGetItem" => call(body, |request| database.batch_get_item(request)),
        "BatchWriteItem" => call(body, |request| database.batch_write_item(request)),
        "TransactGetItems" => call(body, |request| database.transact_get_items(request)),
        "TransactWriteItems" => call(body, |request| database.transact_write_items(request)),
        "ExecuteStatement" => call(body, |request| database.execute_statement(request)),
        "ExecuteTransaction" => call(body, |request| database.execute_transaction(request)),
        "BatchExecuteStatement" => call(body, |request| database.batch_execute_statement(request)),
        "CreateTable" => call(body, |request| database.create_table(request)),
        "DeleteTable" => call(body, |request| database.delete_table(request)),
        "DescribeTable" => call(body, |request| database.describe_table(request)),
        "ListTables" => call(body, |request| database.list_tables(request)),
        "UpdateTable" => call(body, |request| database.update_table(request)),
        "UpdateTimeToLive" => call(body, |request| database.update_time_to_live(request)),
        "DescribeTimeToLive" => call(body, |request| database.describe_time_to_live(request)),
        "TagResource" => call(body, |request| database.tag_resource(request)),
        "UntagResource" => call(body, |request| database.untag_resource(request)),
        "ListTagsOfResource" => call(body, |request| database.list_tags_of_resource(request)),
        "ListStreams" => call(body, |request| database.list_streams(request)),
        "DescribeStream" => call(body, |request| database.describe_stream(request)),
        "GetShardIterator" => call(body, |request| database.get_shard_iterator(request)),
        "GetRecords" => call(body, |request| database.get_records(request)),
        _ => Err(DynoxideError::ValidationException(format!("the operation {operation:?} is not supported here"))),
    }
}

/// As [`carry_out`], but for the tokens by which DynamoDB knows a repeated transaction. The engine looks through all of the last
/// ten minutes for each transaction.
pub(crate) fn carry_out_without_tokens(
    database: &Database,
    operation: &str,
    body: &[u8],
) -> Result<String, DynoxideError> {
    if operation != "TransactWriteItems" {
        return carry_out(database, operation, body);
    }
    call(body, |mut request: TransactWriteItemsRequest| {
        request.client_request_token = None;
        database.transact_write_items(request)
    })
}

/// Reads a request, has `f` carry it out, and writes its answer.
pub(crate) fn call<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    f: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> Result<String, DynoxideError> {
    let request = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    serde_json::to_string(&f(request)?).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

fn unreadable(error: &serde_json::Error) -> DynoxideError {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&position).unwrap_or(&text);
    let after = |markers: &[&str]| markers.iter().find_map(|marker| text.strip_prefix(marker)).map(str::to_owned);
    if let Some(words) = after(&INVALID) {
        DynoxideError::ValidationException(words)
    } else if let Some(words) = after(&UNREADABLE) {
        DynoxideError::SerializationException(words)
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
    fn carry_out_says_what_is_wrong_with_a_request_and_not_how_it_was_read() {
        let database = Database::memory().unwrap();
        for (body, kind, words) in [
            ("{", "SerializationException", "the body must be JSON"),
            (
                r#"{"TableName":"t","Item":{"PK":{"NULL":false}}}"#,
                "ValidationException",
                "One or more parameter values",
            ),
            (r#"{"TableName":"t"}"#, "ValidationException", ""),
            (r#"{"TableName":1,"Item":{}}"#, "Exception", ""),
        ] {
            let told = carry_out(&database, "PutItem", body.as_bytes()).unwrap_err().to_json();
            assert!(told.contains(kind) && told.contains(words), "{body}: {told}");
            assert!(!told.contains("VALIDATION") && !told.contains("at line"), "{body}: {told}");
        }
        assert!(carry_out(&database, "Frobnicate", b"{}").unwrap_err().to_json().contains("not supported"));
    }
}
