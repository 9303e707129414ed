//! What the order desk knows and decides. Pure, as `billing` is, and kept so by the same lints.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![deny(clippy::float_arithmetic)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod buckets;
mod company;
mod customer;
mod ids;
mod lines;
mod order;
mod paid;
mod product;
mod quarter;
mod warehouse;

pub use buckets::{Buckets, Demand};
pub use company::{Assignment, Confidential, Country, Department, Employee, Job, JobRecord, Location, Region};
pub use customer::{Customer, ShippingAddress, representative_for};
pub use ids::{DepartmentId, EmployeeId, JobId, LocationId, OrderId, OrderIdError, PlaceId, ProductId, WarehouseId};
pub use lines::{LinesError, MAX_LINES, MAX_QUANTITY, check_lines};
pub use order::{Effects, Order, OrderLine, OrderStatus, StockEffect, TransitionError, WaitsFor, all_days};
pub use paid::PaidPeriod;
pub use product::{Product, Stock};
pub use quarter::{Quarter, QuarterError, QuarterTotal};
pub use warehouse::{Warehouse, lacking, warehouse_for};
