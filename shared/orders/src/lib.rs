//! The domain types and the rules of the order desk: which products a paid month orders, where they are in stock, and which
//! employee represents the customer. As in `billing`, the code does no input or output and does not read the clock; the
//! same lints enforce this.
//!
//! A module uses only the modules before it: `ids`, `people`, `fulfilment`, `goods`, `audit`.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![deny(clippy::float_arithmetic)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod audit;
mod fulfilment;
mod goods;
mod ids;
mod people;

pub use audit::ledger::{AuditLedger, AuditedItem, AuditedNumber, NumberDifference};
pub use audit::order_digest::OrderDigest;
pub use fulfilment::fill_task::{FillPass, FillTarget, FillTask, WaitingOrder};
pub use fulfilment::follow_up::{FollowUp, FollowUpReason};
pub use fulfilment::follow_up_rules::{FollowUpError, check_part_of_lines, lines_without_part};
pub use fulfilment::lines::{MAX_LINES, MAX_QUANTITY, OrderLinesError, check_order_lines};
pub use fulfilment::order::{
    AddressCorrectionError, BackOrderReason, DateRange, Order, OrderLine, OrderProductsError, OrderStep, Parcel,
    Shipment, StockEffect, TransitionEffects, TransitionError, range_of_all_days,
};
pub use fulfilment::order_events::order_events;
pub use fulfilment::order_status::OrderStatus;
pub use fulfilment::paid_period::PaidPeriod;
pub use fulfilment::refunds::{OrderRefunds, RecordedRefund, RefundEvent};
pub use goods::movement::{
    Movement, MovementError, MovementKind, MovementRequest, OrderMovement, OrderMovementLine, StockChange,
};
pub use goods::product::{Product, Stock};
pub use goods::warehouse::Warehouse;
pub use goods::warehouse_choice::{choose_warehouse, lines_in_stock, missing_lines};
pub use ids::{
    DepartmentId, EmployeeId, JobId, LocationId, MAX_PART, OrderId, OrderIdError, PlaceId, ProductId, WarehouseId,
};
pub use people::company::{
    Assignment, ConfidentialData, Country, Department, Employee, Job, JobRecord, Location, ReferenceKind, Region,
};
pub use people::customer::{Customer, ShippingAddress};
pub use people::phone_number::{PhoneNumber, PhoneNumberError};
pub use people::quarter::{Quarter, QuarterError, QuarterTotal};
