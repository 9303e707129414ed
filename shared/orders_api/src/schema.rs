//! What the order desk's types look like in JSON, beside those of [`rest::schema`].
#![allow(dead_code, reason = "only their schemas are used")]

use utoipa::ToSchema;

/// The due date that was paid, and the subscription.
#[derive(ToSchema)]
#[schema(as = OrderId, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}\\.[0-7][0-9A-HJKMNP-TV-Z]{25}$")]
pub struct OrderIdSchema(String);

/// `BACKORDERED`: it waits, for stock or for an address. `OPEN`: its stock is taken, and it is to be picked.
#[derive(ToSchema)]
#[schema(as = OrderStatus, rename_all = "UPPERCASE")]
pub enum OrderStatusSchema {
    BackOrdered,
    Open,
    Picked,
    Shipped,
    Delivered,
    Returned,
    Cancelled,
}

/// What an order that is back-ordered waits for.
#[derive(ToSchema)]
#[schema(as = WaitsFor, rename_all = "snake_case")]
pub enum WaitsForSchema {
    Address,
    Stock,
}

/// A quarter of a year.
#[derive(ToSchema)]
#[schema(as = Quarter, pattern = "^[0-9]{4}-Q[1-4]$")]
pub struct QuarterSchema(String);

/// A number of pieces.
#[derive(ToSchema)]
#[schema(as = Quantity, minimum = 1, maximum = 1_000_000_000)]
pub struct QuantitySchema(u64);
