//! The table, on which all access patterns are methods.

use std::ops::Deref;

use aws_sdk_dynamodb::Client;
use config::ConfiguredPolicy;
use dynamo::Dynamo;

use crate::table::policy_copy::PolicyCopy;

/// The marker type of this table's schema: the entities that implement `Entity<Payments>` are stored in this table.
#[derive(Clone, Copy, Debug)]
pub struct Payments;

/// The payments table, with one function for each access pattern.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) dynamo: Dynamo<Payments>,
    pub(crate) policy: PolicyCopy,
}

impl Table {
    /// Returns the table `name`, which is accessed through `client`. Until the stored policy is read, the default policy
    /// is used.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self { dynamo: Dynamo::new(client, name), policy: PolicyCopy::new(ConfiguredPolicy::default()) }
    }
}

/// Gives access to the requests of [`Dynamo`] that are the same for all kinds of items, such as Get, Put and Scan.
impl Deref for Table {
    type Target = Dynamo<Payments>;

    fn deref(&self) -> &Dynamo<Payments> {
        &self.dynamo
    }
}
