//! The errors of requests to a table.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::Key;

/// The SDK's error that caused a [`TableError::Request`].
type ErrorSource = Box<dyn std::error::Error + Send + Sync>;

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
    /// The request failed with DynamoDB's error `code`, or without a usable response (`code` is `None`). DynamoDB may
    /// have made the writes of the request, unless `code` shows that it made none.
    #[error("{operation} failed: {}", code.as_deref().unwrap_or("no usable response"))]
    Request {
        operation: &'static str,
        code: Option<String>,
        /// Whether the same request may succeed later.
        transient: bool,
        #[source]
        source: ErrorSource,
    },
}

impl TableError {
    /// Returns whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            TableError::Unreadable { .. }
            | TableError::OtherFormat { .. }
            | TableError::Exists { .. }
            | TableError::Missing { .. } => false,
            TableError::Contended { .. } => true,
            TableError::Request { transient, .. } => *transient,
        }
    }

    /// Returns whether the request failed because another request is writing the same items.
    pub fn is_conflict(&self) -> bool {
        let is_conflict_code = |code: &String| CONFLICT_CODES.contains(&code.as_str());
        match self {
            TableError::Unreadable { .. }
            | TableError::OtherFormat { .. }
            | TableError::Exists { .. }
            | TableError::Missing { .. } => false,
            TableError::Contended { .. } => true,
            TableError::Request { code, .. } => code.as_ref().is_some_and(is_conflict_code),
        }
    }

    /// Returns whether the request failed because the table does not exist.
    pub fn is_missing_table(&self) -> bool {
        matches!(self, TableError::Request { code: Some(code), .. } if code == "ResourceNotFoundException")
    }

    /// Creates [`TableError::Unreadable`] for the item `key`.
    pub fn unreadable(key: Key, reason: impl std::fmt::Display) -> Self {
        TableError::Unreadable { key, reason: reason.to_string() }
    }

    /// Creates [`TableError::Request`] from the SDK's `error` of the DynamoDB `operation`, such as `GetItem`.
    pub fn from_sdk_error<E>(operation: &'static str, error: SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let code = error.code().map(str::to_owned);
        let transient = match &code {
            None => !matches!(error, SdkError::ConstructionFailure(_)),
            Some(code) => TRANSIENT_CODES.contains(&code.as_str()),
        };
        TableError::Request { operation, code, transient, source: Box::new(error) }
    }

    /// Creates the error of a transaction that DynamoDB cancelled for another reason than a failed condition, such as
    /// `TransactionConflict`.
    pub fn from_cancelled_transaction(operation: &'static str, code: &str, source: ErrorSource) -> Self {
        TableError::Request {
            operation,
            code: Some(code.to_owned()),
            transient: TRANSIENT_CODES.contains(&code),
            source,
        }
    }
}

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
