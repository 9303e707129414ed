//! What can go wrong between us and the table.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::Key;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// A request to the table that has no answer we can use. A refused condition is not an error: each operation's
/// result says what it means there.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The item is there but is not what it should be.
    #[error("the item {key} cannot be read: {reason}")]
    Unreadable { key: Key, reason: String },
    /// The table's items are those of another version of the code.
    #[error("its items are of format {found}, and this version reads format {read} only")]
    OtherFormat { found: String, read: u32 },
    /// Something else was written in between, again and again.
    #[error("the item {key} was written by others again and again")]
    Contended { key: Key },
    /// The item is there already, and that of which it tells is not done.
    #[error("the item {key} is there already, though what it records is not done")]
    Exists { key: Key },
    /// The item is not there and must be.
    #[error("there is no item {key}")]
    Missing { key: Key },
    /// The request failed. Whether it took effect is unknown unless `code` says otherwise.
    #[error("{operation} failed: {}", code.as_deref().unwrap_or("no answer"))]
    Request {
        operation: &'static str,
        code: Option<String>,
        transient: bool,
        #[source]
        source: Source,
    },
}

impl TableError {
    /// Whether the same request may succeed later.
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

    /// Whether another request is writing the same items at this moment.
    pub fn is_conflict(&self) -> bool {
        let is_met = |code: &String| CONFLICTS.contains(&code.as_str());
        match self {
            TableError::Unreadable { .. }
            | TableError::OtherFormat { .. }
            | TableError::Exists { .. }
            | TableError::Missing { .. } => false,
            TableError::Contended { .. } => true,
            TableError::Request { code, .. } => code.as_ref().is_some_and(is_met),
        }
    }

    /// Whether there is no such table.
    pub fn is_no_table(&self) -> bool {
        matches!(self, TableError::Request { code: Some(code), .. } if code == "ResourceNotFoundException")
    }

    pub fn unreadable(key: Key, reason: impl std::fmt::Display) -> Self {
        TableError::Unreadable { key, reason: reason.to_string() }
    }

    pub fn request<E>(operation: &'static str, error: SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let code = error.code().map(str::to_owned);
        let transient = match &code {
            None => !matches!(error, SdkError::ConstructionFailure(_)),
            Some(code) => TRANSIENT.contains(&code.as_str()),
        };
        TableError::Request { operation, code, transient, source: Box::new(error) }
    }

    /// A transaction that was cancelled for reasons other than our own condition, such as `TransactionConflict`.
    pub fn cancelled(operation: &'static str, code: &str, source: Source) -> Self {
        TableError::Request { operation, code: Some(code.to_owned()), transient: TRANSIENT.contains(&code), source }
    }
}

/// Error codes and cancellation reasons after which the same request may succeed ("Error handling with DynamoDB" and
/// "TransactWriteItems" in the DynamoDB developer guide).
const TRANSIENT: &[&str] = &[
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

/// Those of them that mean that another request is writing the same items.
const CONFLICTS: &[&str] = &["TransactionConflict", "TransactionConflictException", "TransactionInProgressException"];
