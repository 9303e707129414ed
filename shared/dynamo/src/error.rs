//! The errors of requests to a table.

use aws_errors::AwsRequestError;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::CancellationReason;

use crate::Key;

/// Why a request to the table failed. A failed condition is not an error: each operation returns it as one of its
/// results, because its meaning depends on the operation.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The stored item has an attribute that is missing, has another type or contradicts its key.
    #[error("the item {key} cannot be read: {reason}")]
    Unreadable { key: Key, reason: String },
    /// The table was written by another version of this program, which uses another format of items.
    #[error("the table's items have format {found}, but this version of the program reads only format {read}")]
    OtherFormat { found: String, read: u32 },
    /// All tries of a conditional write failed, because other workers changed the item again before each try.
    #[error("write conflict: other workers kept changing the item {key}")]
    Contended { key: Key },
    /// The item to create already exists with another content, for example a receipt for a due date that is still
    /// unpaid. That is an inconsistency, which a person must examine: a receipt and the change of its subscription are
    /// written in one transaction.
    #[error("inconsistency: the item {key}, which must be created now, exists already")]
    Exists { key: Key },
    /// An item that must exist, such as the settings item, does not exist.
    #[error("the item {key} does not exist")]
    Missing { key: Key },
    /// The embedded engine on this machine cannot use its data file, for example because the disk is full. The same
    /// request fails until a person has corrected the cause.
    #[error("{operation} failed: {cause}")]
    LocalStorage { operation: &'static str, cause: String },
    /// The request failed. If `source` has no error code of DynamoDB, there was no usable response. DynamoDB may have
    /// made the writes of the request, unless the code shows that it made none. The text contains the whole cause, so a
    /// log line with this error needs no `source`.
    #[error("{operation} failed: {source}")]
    Request {
        operation: &'static str,
        /// Whether the same request may succeed later.
        transient: bool,
        source: AwsRequestError,
    },
}

impl TableError {
    /// Returns whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            TableError::Unreadable { .. }
            | TableError::OtherFormat { .. }
            | TableError::Exists { .. }
            | TableError::Missing { .. }
            | TableError::LocalStorage { .. } => false,
            TableError::Contended { .. } => true,
            TableError::Request { transient, .. } => *transient,
        }
    }

    /// Returns whether the request failed because another request is writing the same items.
    pub fn is_conflict(&self) -> bool {
        match self {
            TableError::Unreadable { .. }
            | TableError::OtherFormat { .. }
            | TableError::Exists { .. }
            | TableError::Missing { .. }
            | TableError::LocalStorage { .. } => false,
            TableError::Contended { .. } => true,
            TableError::Request { source, .. } => {
                source.code.as_deref().is_some_and(|code| CONFLICT_CODES.contains(&code))
            }
        }
    }

    /// Returns whether the request failed because the table does not exist.
    pub fn is_missing_table(&self) -> bool {
        matches!(self, TableError::Request { source, .. } if source.code.as_deref() == Some("ResourceNotFoundException"))
    }

    /// Creates [`TableError::Unreadable`] for the item `key`.
    pub fn unreadable(key: Key, reason: impl std::fmt::Display) -> Self {
        TableError::Unreadable { key, reason: reason.to_string() }
    }

    /// Creates [`TableError::Request`] (or [`TableError::LocalStorage`]) from the SDK's `error` of the DynamoDB
    /// `operation`, such as `GetItem`.
    pub fn from_sdk_error<E>(operation: &'static str, error: SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        if error.code() == Some(LOCAL_STORAGE_ERROR) {
            let cause = error.message().unwrap_or(LOCAL_STORAGE_ERROR).to_owned();
            return TableError::LocalStorage { operation, cause };
        }
        let transient = match error.code() {
            None => !matches!(error, SdkError::ConstructionFailure(_)),
            Some(code) => TRANSIENT_CODES.contains(&code),
        };
        TableError::Request { operation, transient, source: AwsRequestError::new(&error) }
    }

    /// Creates the error of a transaction that DynamoDB cancelled because of `reason`, which is another reason than a
    /// failed condition, such as `TransactionConflict`.
    pub fn from_cancelled_transaction<E>(
        operation: &'static str,
        error: &SdkError<E>,
        reason: &CancellationReason,
    ) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let code = reason.code().unwrap_or_default();
        let source = AwsRequestError::new(error).of_entry(code, reason.message());
        TableError::Request { operation, transient: TRANSIENT_CODES.contains(&code), source }
    }
}

/// The code with which the embedded engine reports that it cannot use its data file (`error_response.rs` in the crate
/// `emulator`).
const LOCAL_STORAGE_ERROR: &str = "LocalStorageError";

/// Error codes and cancellation reasons after which the same request may succeed later ("Error handling with DynamoDB"
/// and "TransactWriteItems" in the DynamoDB developer guide).
const TRANSIENT_CODES: &[&str] = &[
    "InternalServerError",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ThrottlingError",
    "ThrottlingException",
    "TransactionConflict",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// The codes among [`TRANSIENT_CODES`] that DynamoDB returns if another request is writing the same items.
const CONFLICT_CODES: &[&str] =
    &["TransactionConflict", "TransactionConflictException", "TransactionInProgressException"];
