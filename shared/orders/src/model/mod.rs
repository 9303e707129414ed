//! The domain types and the rules of the order desk. As in `billing`, the code does no input or output and does not
//! read the clock; the same lints enforce this.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![deny(clippy::float_arithmetic)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod buckets;
mod company;
mod contradictions;
mod customer;
mod fill_task;
mod follow_up;
mod follow_up_rules;
mod ids;
mod ledger;
mod lines;
mod movement;
mod order;
mod order_digest;
mod order_events;
mod order_status;
mod paid_period;
mod phone_number;
mod product;
mod quarter;
mod refunds;
mod warehouse;
mod warehouse_choice;

pub use buckets::{BucketEstimate, Buckets};
pub use company::{
    Assignment, ConfidentialData, Country, Department, Employee, Job, JobRecord, Location, ReferenceKind, Region,
};
pub use customer::{Customer, ShippingAddress, choose_representative};
pub use fill_task::{FillPass, FillTarget, FillTask, WaitingOrder};
pub use follow_up::{FollowUp, FollowUpReason};
pub use follow_up_rules::{FollowUpError, check_part, lines_without};
pub use ids::{
    DepartmentId, EmployeeId, JobId, LocationId, MAX_PART, OrderId, OrderIdError, PlaceId, ProductId, WarehouseId,
};
pub use ledger::{AuditedItem, AuditedNumber, Ledger, NumberDifference};
pub use lines::{LinesError, MAX_LINES, MAX_QUANTITY, check_lines};
pub use movement::{
    Movement, MovementError, MovementKind, MovementRequest, OrderMovement, OrderMovementLine, StockChange,
};
pub use order::{
    BackOrderReason, CorrectionError, Order, OrderLine, Parcel, ProductsError, Shipment, Step, StockEffect,
    TransitionEffects, TransitionError, all_days,
};
pub use order_digest::OrderDigest;
pub use order_events::order_events;
pub use order_status::OrderStatus;
pub use paid_period::PaidPeriod;
pub use phone_number::{PhoneNumber, PhoneNumberError};
pub use product::{Product, Stock};
pub use quarter::{Quarter, QuarterError, QuarterTotal};
pub use refunds::{OrderRefunds, RecordedRefund, RefundEvent};
pub use warehouse::Warehouse;
pub use warehouse_choice::{choose_warehouse, lines_in_stock, missing_lines};
