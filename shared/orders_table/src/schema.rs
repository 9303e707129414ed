//! The schema of the table of the order desk. On the embedded engine, this code creates the table. On AWS,
//! `template.yaml` creates the same table.

use crate::OrdersTable;
use crate::items::{BUCKET, DATA};
use dynamo::{IndexSchema, KeySchema, TableError, TableSchema};

/// The index that finds relations (items that relate two entities) by the entity in their sort key. The index is
/// overloaded: it contains relations between all kinds of entities.
pub const GSI_1: &str = "GSI-1";
/// The index over all orders, which are spread over several partitions ("buckets") to avoid a hot partition.
pub const GSI_2: &str = "GSI-2";

/// The keys of the table and of its indexes. Both indexes project all attributes.
pub static ORDERS_SCHEMA: TableSchema<2> = TableSchema {
    keys: KeySchema { partition: ("PK", "S"), sort: ("SK", "S") },
    indexes: [
        IndexSchema { name: GSI_1, keys: KeySchema { partition: ("SK", "S"), sort: (DATA, "S") }, attributes: None },
        IndexSchema { name: GSI_2, keys: KeySchema { partition: (BUCKET, "N"), sort: (DATA, "S") }, attributes: None },
    ],
};

impl OrdersTable {
    /// Returns whether the table exists. Sends one DescribeTable request.
    pub async fn exists(&self) -> Result<bool, TableError> {
        self.dynamo.table_exists().await
    }

    /// Creates the table if it does not exist. Only for the embedded engine: on AWS the template creates the table.
    pub async fn create_if_absent(&self) -> Result<(), TableError> {
        match self.exists().await? {
            // A table that an earlier version of Dueday created might not have TTL enabled.
            true => self.dynamo.enable_ttl().await,
            false => self.dynamo.create_table(&ORDERS_SCHEMA).await,
        }
    }
}
