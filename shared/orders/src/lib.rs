//! The order desk: places one order for each paid month, deducts the products from the stock of a warehouse, and
//! credits the order to the employee who represents the customer.
//!
//! The order desk is a bounded context with its own table, which follows the AWS example of relational data in
//! DynamoDB. It learns of payments only from `payment.succeeded` events; the crate `billing` does not depend on it. The
//! events of its orders are computed from the changes in the stream of its table.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod audit;
mod config;
mod desk;
mod model;
mod queue;
mod table;

pub use audit::{AuditReport, OrdersAudit, open_stocks};
pub use config::*;
pub use desk::{
    AdvanceOutcome, CreatedFollowUp, DeskError, FillCounts, FollowUpOutcome, OrderDesk, PaymentRecords, PlaceOutcome,
    ReplacementRequest,
};
pub use dynamo::KeySchema;
pub use model::*;
pub use queue::{ProcessEventError, SKU_WITHOUT_PRODUCTS_MESSAGE, UNRECORDED_PAYMENT_MESSAGE, process_event};
pub use table::{
    CreditedOrder, DateRange, EmployeeDetails, EmployeeList, NamedLine, ORDERS_SCHEMA, OrderList, OrderToPack,
    OrdersPage, OrdersScan, OrdersTable, PaymentsTable, ProductOrder, ReferencedEntity, RefusedWrite, Requester,
    StockBefore, WaitingOrdersPage, WriteOutcome, is_order_key, item_kinds, normalize_name,
    read_order_from_stream_image,
};
