//! `/orders`: what is shipped for each paid month.

use ::orders::{
    Advanced, EmployeeId, Order, OrderId, OrderLine, OrderStatus, ProductId, Quarter, QuarterTotal, WaitsFor,
    WarehouseId,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use billing::{AccountId, Currency};
use chrono::{DateTime, Utc};
use dynamo::KeptAnswer;
use rest::body::{Body, MinorUnits, Nothing};
use rest::caller::Operator;
use rest::etag::IfMatch;
use rest::idempotency::{IdempotencyKey, answer, replay};
use rest::list::ListView;
use rest::parameters::{NoParameters, Path, PathId, Query};
use rest::{Caller, Now, Problem};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::OrdersApi;
use super::parameters::{OrderPath, OrdersQuery, no_order};
use super::products::Quantity;

/// What is shipped for a paid month.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Order)]
pub struct OrderView {
    /// The due date that was paid, and the subscription.
    id: OrderId,
    /// The account that paid.
    customer: AccountId,
    /// Who is credited with it; null if nobody is.
    representative: Option<EmployeeId>,
    /// How it stands.
    status: OrderStatus,
    /// What it waits for; null if it does not.
    waits_for: Option<WaitsFor>,
    /// Where its stock was taken from; null until it was.
    warehouse: Option<WarehouseId>,
    /// What was paid for it, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// When it was paid.
    placed_at: DateTime<Utc>,
    /// Counts its changes.
    version: u64,
}

/// An order, and what it is made of.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderWithLines)]
pub struct OrderWithLines {
    #[serde(flatten)]
    #[schema(inline)]
    order: OrderView,
    /// What it is made of.
    lines: Vec<LineView>,
}

/// So many of a product.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderLine)]
pub struct LineView {
    /// The product.
    pub product: ProductId,
    /// How many of it.
    #[schema(value_type = Quantity)]
    pub quantity: u32,
}

/// What the customers of a representative have ordered in a quarter.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuarterTotal)]
pub struct TotalView {
    /// The representative.
    representative: EmployeeId,
    /// The quarter, in UTC.
    quarter: Quarter,
    /// The sum of all orders that are neither cancelled nor returned, in minor units.
    #[schema(minimum = 0)]
    amount: i64,
    /// The currency of the amount.
    currency: Currency,
}

/// Which quarter, in which currency.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RankingQuery {
    /// The quarter, such as 2027-Q1.
    quarter: Quarter,
    /// The currency: amounts of several are not added up.
    currency: Currency,
}

/// What is done with an order.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Pick,
    Ship,
    Deliver,
    Return,
    Cancel,
}

/// An order, and what is done with it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct StepPath {
    /// The order.
    #[param(value_type = OrderId)]
    order: PathId<OrderId>,
    /// What is done with it.
    #[param(inline)]
    step: Step,
}

impl From<Order> for OrderView {
    fn from(order: Order) -> Self {
        let Order { id, customer, representative, status, waits_for, warehouse, total, placed_at, version, .. } = order;
        let (amount, currency) = (total.into(), total.currency());
        Self { id, customer, representative, status, waits_for, warehouse, amount, currency, placed_at, version }
    }
}

impl From<OrderLine> for LineView {
    fn from(OrderLine { product, quantity }: OrderLine) -> Self {
        Self { product, quantity }
    }
}

impl From<QuarterTotal> for TotalView {
    fn from(of: QuarterTotal) -> Self {
        let (amount, currency) = (of.total.minor(), of.total.currency());
        Self { representative: of.representative, quarter: of.quarter, amount, currency }
    }
}

impl Step {
    fn becomes(self) -> OrderStatus {
        match self {
            Self::Pick => OrderStatus::Picked,
            Self::Ship => OrderStatus::Shipped,
            Self::Deliver => OrderStatus::Delivered,
            Self::Return => OrderStatus::Returned,
            Self::Cancel => OrderStatus::Cancelled,
        }
    }
}

fn shown(order: &Order, lines: &[OrderLine]) -> String {
    let lines = lines.iter().cloned().map(LineView::from).collect();
    let view = OrderWithLines { order: order.clone().into(), lines };
    serde_json::to_string(&view).expect("a view is representable")
}

fn current(order: &Order, lines: &[OrderLine]) -> Response {
    answer(StatusCode::OK, KeptAnswer { json: shown(order, lines), version: order.version })
}

/// List all orders
///
/// Of all customers, the oldest first.
#[utoipa::path(
    get,
    path = "/orders",
    operation_id = "list_orders",
    tag = "orders",
    params(OrdersQuery),
    responses((status = 200, description = "A page of them", body = ListView<OrderView>))
)]
pub async fn list(
    State(api): State<OrdersApi>,
    _: Operator,
    Query(query): Query<OrdersQuery>,
) -> Result<Json<ListView<OrderView>>, Problem> {
    let (statuses, days, paging) = query.read()?;
    let table = &api.desk.table;
    // Their number may have been raised since this function began.
    let buckets = table.buckets(api.desk.buckets()).await?;
    Ok(Json(ListView::of(table.orders_in(&statuses, days, buckets, &paging).await?, OrderView::from)?))
}

/// Rank the representatives
///
/// By what their customers have ordered in a quarter, the most first: all of them.
#[utoipa::path(
    get,
    path = "/orders/ranking",
    operation_id = "get_ranking",
    tag = "orders",
    params(RankingQuery),
    responses((status = 200, description = "All representatives who are credited with an order", body = ListView<TotalView>))
)]
pub async fn ranking(
    State(api): State<OrdersApi>,
    _: Operator,
    Query(RankingQuery { quarter, currency }): Query<RankingQuery>,
) -> Result<Json<ListView<TotalView>>, Problem> {
    Ok(Json(ListView::whole(api.desk.table.ranking(quarter, currency).await?, TotalView::from)))
}

/// Read an order
///
/// As it is at this moment, with what it is made of. Its `ETag` is what `If-Match` takes.
#[utoipa::path(
    get,
    path = "/orders/{order}",
    operation_id = "get_order",
    tag = "orders",
    params(OrderPath),
    responses((status = 200, description = "The order as it is now", body = OrderWithLines,
        headers(("ETag" = String, description = "Its version, in quotes"))))
)]
pub async fn read(
    State(api): State<OrdersApi>,
    caller: Caller,
    Path(OrderPath { order }): Path<OrderPath>,
    _: Query<NoParameters>,
) -> Result<Response, Problem> {
    let (order, lines) = api.desk.table.order(order.or(no_order)?).await?.ok_or_else(no_order)?;
    caller.sees(&order.customer).map_err(|_| no_order())?;
    Ok(current(&order, &lines))
}

/// Move an order on
///
/// Pick, ship, deliver, return or cancel it. Stock that was taken is given back when it is cancelled or returned.
#[utoipa::path(
    post,
    path = "/orders/{order}/{step}",
    operation_id = "advance_order",
    tag = "orders",
    params(StepPath, IdempotencyKey, IfMatch),
    request_body = Nothing,
    responses((status = 200, description = "The order as it is now", body = OrderWithLines,
        headers(("ETag" = String, description = "Its version, in quotes"))))
)]
#[expect(clippy::too_many_arguments, reason = "each is an extractor")]
pub async fn advance(
    State(api): State<OrdersApi>,
    now: Now,
    _: Operator,
    Path(StepPath { order, step }): Path<StepPath>,
    _: Query<NoParameters>,
    if_match: IfMatch,
    key: IdempotencyKey,
    body: Body<Nothing>,
) -> Result<Response, Problem> {
    let id = order.or(no_order)?;
    let request = key.request(&body.hash, now.at);
    let wanted = |order: &Order| if_match.allows(order.version);
    match api.desk.advance_once(id, step.becomes(), request.as_ref(), shown, wanted).await? {
        Advanced::Done(order, lines) => Ok(current(&order, &lines)),
        Advanced::Replayed(replayed) => replay(replayed, StatusCode::OK),
    }
}
