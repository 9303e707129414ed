//! The schema of the order desk's table: what `template.yaml` declares on AWS and what the code creates on the embedded engine.

use super::OrdersTable;
use super::items::{BUCKET, DATA};
use dynamo::{Index, Keys, Schema, TableError};

/// The overloaded index: every edge from its other end.
pub const GSI_1: &str = "GSI-1";
/// All orders, in buckets.
pub const GSI_2: &str = "GSI-2";

/// The table, and its indexes. Both project everything.
pub static ORDERS_SCHEMA: Schema<2> = Schema {
    keys: Keys { partition: ("PK", "S"), sort: ("SK", "S") },
    indexes: [
        Index { name: GSI_1, keys: Keys { partition: ("SK", "S"), sort: (DATA, "S") }, attributes: None },
        Index { name: GSI_2, keys: Keys { partition: (BUCKET, "N"), sort: (DATA, "S") }, attributes: None },
    ],
};

impl OrdersTable {
    /// Whether there is such a table. DescribeTable.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn exists(&self) -> Result<bool, TableError> {
        self.0.exists().await
    }

    /// Creates the table if it is not there. For the embedded engine: on AWS the template does it.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn create_if_absent(&self) -> Result<(), TableError> {
        match self.exists().await? {
            // A table may be older than anything in it that expires.
            true => self.0.expire_items().await,
            false => self.0.create(&ORDERS_SCHEMA).await,
        }
    }
}
