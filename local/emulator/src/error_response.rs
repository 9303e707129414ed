//! The HTTP response to a request that the engine refused. An error of the data file gets its own code, with the cause.

use dynoxide::DynoxideError;
use serde_json::json;

/// The code of an error of the data file. DynamoDB has no such code: its service has no data file. `TableError` in the
/// crate `dynamo` recognizes the code. The SDK does not repeat a request after it.
const LOCAL_STORAGE_ERROR: &str = "LocalStorageError";
/// The HTTP status of [`LOCAL_STORAGE_ERROR`].
const LOCAL_STORAGE_STATUS: u16 = 400;

/// SQLite's messages about a data file that cannot be used until a person has corrected the cause ("Result and Error
/// Codes" in SQLite's documentation).
const LOCAL_STORAGE_MESSAGES: [&str; 5] = [
    "database or disk is full",
    "disk I/O error",
    "attempt to write a readonly database",
    "unable to open database file",
    "database disk image is malformed",
];

/// Returns the HTTP status and the JSON body of the response to a request that failed with `error`.
pub(crate) fn dynamodb_error_response(error: &DynoxideError) -> (u16, String) {
    match local_storage_cause(error) {
        Some(cause) => (LOCAL_STORAGE_STATUS, json!({"__type": LOCAL_STORAGE_ERROR, "message": cause}).to_string()),
        None => (error.status_code(), error.to_json()),
    }
}

/// Returns SQLite's message if `error` is an error of the data file; `None` for any other error.
fn local_storage_cause(error: &DynoxideError) -> Option<&'static str> {
    if !matches!(error, DynoxideError::InternalServerError(_) | DynoxideError::SqliteError(_)) {
        return None;
    }
    let text = error.to_string();
    LOCAL_STORAGE_MESSAGES.into_iter().find(|message| text.contains(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_the_data_file_has_its_own_code_and_names_the_cause() {
        let full = rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL),
            Some("database or disk is full".to_owned()),
        );
        let converted = DynoxideError::InternalServerError("backend: I/O error: disk I/O error".to_owned());
        for (error, cause) in [(DynoxideError::from(full), "database or disk is full"), (converted, "disk I/O error")] {
            let (status, body) = dynamodb_error_response(&error);
            assert_eq!(status, 400);
            assert!(body.contains("LocalStorageError") && body.contains(cause), "{body}");
        }
    }

    #[test]
    fn other_internal_errors_and_texts_of_the_caller_keep_their_code() {
        let busy = DynoxideError::InternalServerError("backend: database is locked or busy".to_owned());
        assert_eq!(dynamodb_error_response(&busy), (500, busy.to_json()));
        let quoted = DynoxideError::ValidationException("the value \"disk I/O error\" is wrong".to_owned());
        assert_eq!(dynamodb_error_response(&quoted), (400, quoted.to_json()));
    }
}
