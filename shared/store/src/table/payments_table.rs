//! The table, on which all access patterns are methods.

use std::ops::Deref;

use aws_sdk_dynamodb::Client;
use config::ConfiguredPolicy;
use dynamo::DynamoTable;

use crate::table::policy_copy::PolicyCopy;

/// The marker type of this table's schema: the entities that implement `Entity<PaymentsSchema>` are stored in this table.
#[derive(Clone, Copy, Debug)]
pub struct PaymentsSchema;

/// The payments table, with one function for each access pattern.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) dynamo: DynamoTable<PaymentsSchema>,
    pub(crate) policy: PolicyCopy,
}

impl Table {
    /// Returns the table `name`, which is accessed through `client`. Until the stored policy is read, the default policy
    /// is used.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self { dynamo: DynamoTable::new(client, name), policy: PolicyCopy::new(ConfiguredPolicy::default()) }
    }
}

/// Gives access to the requests of [`DynamoTable`] that are the same for all kinds of items, such as Get, Put and Scan.
impl Deref for Table {
    type Target = DynamoTable<PaymentsSchema>;

    fn deref(&self) -> &DynamoTable<PaymentsSchema> {
        &self.dynamo
    }
}
