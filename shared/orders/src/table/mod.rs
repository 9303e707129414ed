//! The order desk's table: an adjacency list after "Example of modeling relational data in DynamoDB" in the Amazon DynamoDB
//! developer guide, and its fourteen access patterns, each by its name.
//!
//! What always holds here:
//! - Every entity has an item of its own, under its key twice, but for the order, whose item leads to its customer. Those that
//!   change by what is read of them (orders, customers, employees, products, warehouses, SKUs, totals) have a version that guards it. Every relation is an
//!   edge in the partition of one entity, whose sort key is the other one: GSI-1 (`SK`, `Data`) reads it from there.
//! - An item that is to be found through GSI-1 has `Data`; all others leave it out and cost that index nothing.
//! - An order, its edges, the stock that it takes and the total that it counts in are written in one transaction.
//! - Nothing expires but the answers of requests under an idempotency key.
//! - Keys are written in `keys.rs` alone; attribute names and types in `items/` alone.

mod customers;
mod employees;
mod index;
mod items;
mod keys;
mod orders;
mod pages;
mod places;
mod products;
mod ranking;
mod schema;
mod settings;
mod writes;

use aws_sdk_dynamodb::Client;

pub use employees::EmployeeDetails;
pub use orders::{CreditedOrder, Days, ProductOrder};
pub use schema::{GSI_1, GSI_2, ORDERS_SCHEMA};
pub use writes::Written;

use dynamo::Dynamo;

/// The order desk's table and its access patterns.
#[derive(Clone, Debug)]
pub struct OrdersTable(Dynamo<OrdersTable>);

impl OrdersTable {
    /// The table `name`, reached through `client`.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self(Dynamo::new(client, name))
    }

    /// The SDK client, for what concerns no item.
    pub fn client(&self) -> &Client {
        self.0.client()
    }
}
