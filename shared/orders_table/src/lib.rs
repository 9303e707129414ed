//! The table of the order desk: an adjacency list as in "Example of modeling relational data in DynamoDB" in the Amazon
//! DynamoDB developer guide, with one method for each of its fourteen access patterns.
//!
//! A *relation* is an item that relates two entities, such as an order and a product. Its partition key is the key of
//! the first entity, and its sort key is the key of the second entity. GSI-1 (`SK`, `Data`) finds the relations by
//! their second entity.
//!
//! Invariants:
//! - Every entity has its own item, whose `PK` and `SK` are both the key of the entity. Only the own item of an order
//!   has another `SK`: the key of its customer. Orders, customers, employees, products, warehouses, SKUs and quarter
//!   totals have a version, because each change depends on the stored item. Each change is conditional on the version.
//! - An item that GSI-1 must find has the attribute `Data`. All other items leave it out, so they are not in the index
//!   and cost nothing there.
//! - An order, its relations, the change of the stock and the change of the representative's total are written in one
//!   transaction.
//! - Each change of the stock of a product in a warehouse writes a stock movement (the record of the change) in the
//!   same transaction, so that the stock is the sum of its movements.
//! - Each transaction that adds stock or sets a shipping address also writes a fill task: a request to try again to
//!   fill backordered orders (see `fill_tasks.rs`). So the orders are filled later even if the process stops after the
//!   transaction.
//! - No item expires, except the saved responses to requests with an idempotency key.
//! - Only `keys.rs` knows the format of keys. Only `items/` knows the attribute names and types.
//!
//! The methods are in the modules of their subjects: `people`, `goods`, `fulfilment` and `audit`.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod audit;
mod buckets;
mod config;
mod fulfilment;
mod goods;
mod items;
mod keys;
mod list_pages;
mod partition_queries;
mod people;
mod requester;
mod schema;
mod settings;
mod stream;
mod write_transaction;

use aws_sdk_dynamodb::Client;

pub use audit::item_kinds::item_kinds;
pub use audit::orders_audit::{OrdersAudit, OrdersAuditReport, write_opening_movements};
pub use audit::orders_scan::{OrdersPage, OrdersScan};
pub use buckets::{BucketCount, BucketEstimate};
pub use config::{ORDER_BUCKETS, ORDERS_TABLE, VARIABLES};
pub use dynamo::KeySchema;
pub use fulfilment::fill_tasks::WaitingOrdersPage;
pub use fulfilment::follow_ups::NewFollowUp;
pub use fulfilment::orders::{CreditedOrder, OrderChangeRecords, ProductOrder};
pub use fulfilment::warehouse_orders::{NamedLine, OrderToPack};
pub use goods::stock::StockBefore;
pub use keys::normalize_name;
pub use list_pages::OrderList;
pub use people::company::ReferencedEntity;
pub use people::employees::{EmployeeDetails, EmployeeList};
pub use requester::{PaymentsTable, Requester};
pub use schema::{GSI_1, GSI_2, ORDERS_SCHEMA};
pub use stream::{is_order_key, read_order_from_stream_image};
pub use write_transaction::{RefusedWrite, WriteOutcome};

use dynamo::DynamoTable;

/// The DynamoDB table of the order desk, with one method for each access pattern.
#[derive(Clone, Debug)]
pub struct OrdersTable {
    dynamo: DynamoTable<OrdersTable>,
    /// The person or program that requests the changes; `None` for the jobs of the order desk.
    requester: Option<Requester>,
}

impl OrdersTable {
    /// Returns the table `name`, which is accessed through `client`. Makes no request.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self { dynamo: DynamoTable::new(client, name), requester: None }
    }

    /// Returns the SDK client, for requests that do not read or write an item.
    pub fn client(&self) -> &Client {
        self.dynamo.client()
    }
}
