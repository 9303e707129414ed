//! `/orders/advance`: one step for many orders, such as all orders of a pick list.

use std::collections::BTreeSet;

use axum::Json;
use billing::Label;
use futures::{StreamExt as _, stream};
use orders::{Order, OrderId, OrderStatus, OrderStep, Parcel};
use orders_desk::{DeskError, OrderDesk};
use rest::body::Body;
use rest::parameters::{NoParameters, Query};
use rest::{OperatorAccess, Problem};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::DeskProblem;

/// The largest number of orders in one request. The desk sends at least two requests to the table for each order.
const MAX_ORDERS: usize = 100;
/// The largest number of orders that one request advances at the same time.
const MAX_CONCURRENT_ORDERS: usize = 8;

/// A step that many orders can take at once.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommonStep {
    Pick,
    Ship,
    Deliver,
}

/// A step, and the orders that take it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AdvanceOrders)]
pub struct AdvanceFields {
    /// The step.
    step: CommonStep,
    /// The orders, at most 100.
    #[schema(min_items = 1, max_items = 100)]
    orders: Vec<AdvancedOrder>,
}

/// An order, and its parcel if the step is `ship`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OrderToAdvance)]
pub struct AdvancedOrder {
    /// The identifier of the order.
    #[schema(value_type = OrderId)]
    order: String,
    /// The company that carries the parcel. Only for the step `ship`.
    #[serde(default)]
    carrier: Option<Label>,
    /// The number by which the carrier finds the parcel. Only for the step `ship`.
    #[serde(default)]
    tracking_number: Option<Label>,
}

/// The results of a step for many orders.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdvanceResults)]
pub struct AdvanceResults {
    /// One result for each order, in the sequence of the request.
    data: Vec<AdvanceResult>,
    /// The number of orders that did not take the step.
    failed: usize,
}

/// The result of a step for one order: a status or a problem.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdvanceResult)]
pub struct AdvanceResult {
    /// The identifier of the order.
    order: OrderId,
    /// The status of the order after the step; null if the order did not take the step.
    status: Option<OrderStatus>,
    /// Why the order did not take the step; null if it did.
    problem: Option<Problem>,
}

impl AdvanceResult {
    /// Creates the result for `order`: its status if the step succeeded, otherwise the problem.
    fn new(order: OrderId, result: Result<Order, DeskError>) -> Self {
        match result {
            Ok(after) => Self { order, status: Some(after.status), problem: None },
            Err(error) => Self { order, status: None, problem: Some(DeskProblem::from(error).0) },
        }
    }
}

/// Advance many orders
///
/// Picks, ships or delivers up to 100 orders. Each order is changed in a transaction of its own: if some orders cannot take the
/// step, the response names the problem of each, and the other orders take it. An order that already has the new status
/// does not change, so the request can be repeated.
#[utoipa::path(
    post,
    path = "/orders/advance",
    operation_id = "advance_orders",
    tag = "orders",
    request_body = AdvanceFields,
    responses((status = 200, description = "The result for each order", body = AdvanceResults))
)]
pub async fn advance_orders(
    DeskForCaller(desk): DeskForCaller,
    _: OperatorAccess,
    _: Query<NoParameters>,
    body: Body<AdvanceFields>,
) -> Result<Json<AdvanceResults>, DeskProblem> {
    let AdvanceFields { step, orders } = body.value;
    if !(1..=MAX_ORDERS).contains(&orders.len()) {
        let count = orders.len();
        return Err(Problem::invalid_field(
            "orders",
            format!("must contain from 1 to {MAX_ORDERS} orders, not {count}"),
        )
        .into());
    }
    let next = match step {
        CommonStep::Pick => OrderStatus::Picked,
        CommonStep::Ship => OrderStatus::Shipped,
        CommonStep::Deliver => OrderStatus::Delivered,
    };
    let has_parcel = |order: &AdvancedOrder| order.carrier.is_some() || order.tracking_number.is_some();
    if next != OrderStatus::Shipped && orders.iter().any(has_parcel) {
        return Err(Problem::refused_field("orders", "carrier and tracking_number are only for the step ship").into());
    }
    let mut seen = BTreeSet::new();
    let mut steps = Vec::with_capacity(orders.len());
    for AdvancedOrder { order, carrier, tracking_number } in orders {
        let order: OrderId = order.parse().map_err(|error| Problem::refused_field("orders.order", error))?;
        if !seen.insert(order) {
            return Err(Problem::refused_field("orders", format!("must contain the order {order} once")).into());
        }
        steps.push((order, OrderStep { parcel: Parcel { carrier, tracking_number }, ..next.into() }));
    }
    let results = stream::iter(steps)
        .map(|(order, step)| advance_listed_order(&desk, order, step))
        .buffered(MAX_CONCURRENT_ORDERS);
    let data: Vec<AdvanceResult> = results.collect().await;
    let failed = data.iter().filter(|result| result.problem.is_some()).count();
    Ok(Json(AdvanceResults { data, failed }))
}

/// Advances one order by `step`, and returns the result, also if the step fails.
async fn advance_listed_order(desk: &OrderDesk, order: OrderId, step: OrderStep) -> AdvanceResult {
    AdvanceResult::new(order, desk.advance_order(order, step).await)
}
