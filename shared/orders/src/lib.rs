//! The order desk: what was paid is ordered, once for each paid month, taken from stock and credited to whoever looks after the
//! customer.
//!
//! A bounded context of its own, with a table of its own after AWS's example of relational data in DynamoDB: it learns of
//! payments by events alone, and `billing` knows nothing of it.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod config;
mod desk;
mod model;
mod queue;
mod table;

pub use config::*;
pub use desk::{Advanced, DeskError, Filled, OrderDesk, PlaceOutcome};
pub use dynamo::Keys;
pub use model::*;
pub use queue::{NO_PRODUCTS, TakeError, take};
pub use table::{CreditedOrder, Days, EmployeeDetails, ORDERS_SCHEMA, OrdersTable, ProductOrder, Written};
