//! `/orders`: the orders of products. A paid month of a subscription has one order, and may have follow-up orders.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use billing::{Currency, Label};
use dynamo::StoredResponse;
use orders::{Order, OrderId, OrderLine, OrderStatus, OrderStep, Parcel, Quarter};
use orders_desk::AdvanceOutcome;
use orders_table::OrderList;
use rest::body::Body;
use rest::etag::IfMatch;
use rest::idempotency::{IdempotencyKey, json_response, replay_response};
use rest::list::ListView;
use rest::parameters::{NoParameters, Path, PathId, Query};
use rest::{AccountAction, Caller, OperatorAccess, Problem, RequestTime};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::OrdersApi;
use crate::address::AddressView;
use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::{DeskProblem, check_version};
use crate::fulfilment::lines::LineFields;
use crate::fulfilment::order_view::{OrderView, OrderWithLines, QuarterTotalView};
use crate::parameters::{OrderPath, OrdersQuery, order_not_found};

/// The quarter and the currency of a ranking.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RankingQuery {
    /// The quarter in UTC, such as 2027-Q1.
    quarter: Quarter,
    /// The currency. Amounts in different currencies are not added up.
    currency: Currency,
}

/// A step that advances an order to its next status, or that returns or cancels it.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Step)]
pub enum StepName {
    Pick,
    Ship,
    Deliver,
    Return,
    Cancel,
}

/// The parcel of an order that is shipped.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AdvanceOrder)]
pub struct StepFields {
    /// The company that carries the parcel. Only for the step `ship`.
    #[serde(default)]
    carrier: Option<Label>,
    /// The number by which the carrier finds the parcel. Only for the step `ship`.
    #[serde(default)]
    tracking_number: Option<Label>,
    /// Whether the returned products are not sellable, so that they are not added to the stock again. Only for the step
    /// `return`.
    #[serde(default)]
    unsellable: bool,
}

/// An order and the step to carry out.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct StepPath {
    /// The identifier of the order.
    #[param(value_type = OrderId)]
    order: PathId<OrderId>,
    /// The step to carry out.
    #[param(inline)]
    step: StepName,
}

impl StepName {
    /// Returns the status of an order after the step.
    fn target_status(self) -> OrderStatus {
        match self {
            Self::Pick => OrderStatus::Picked,
            Self::Ship => OrderStatus::Shipped,
            Self::Deliver => OrderStatus::Delivered,
            Self::Return => OrderStatus::Returned,
            Self::Cancel => OrderStatus::Cancelled,
        }
    }

    /// Returns the step together with the data in `fields`: the parcel, and whether returned products are not sellable.
    ///
    /// # Errors
    /// - `fields` contains a parcel, but the step is not `ship`.
    /// - `fields` contains that the products are not sellable, but the step is not `return`.
    fn to_order_step(self, fields: StepFields) -> Result<OrderStep, Problem> {
        let StepFields { carrier, tracking_number, unsellable } = fields;
        if unsellable && self.target_status() != OrderStatus::Returned {
            return Err(Problem::refused_field("unsellable", "is only for the step return"));
        }
        let given = [("carrier", carrier.is_some()), ("tracking_number", tracking_number.is_some())];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((field, _)) if self.target_status() != OrderStatus::Shipped => {
                Err(Problem::refused_field(field, "is only for the step ship"))
            }
            _ => Ok(OrderStep {
                next: self.target_status(),
                parcel: Parcel { carrier, tracking_number },
                is_unsellable: unsellable,
            }),
        }
    }
}

/// Returns the JSON of an order with its lines.
fn order_json(order: &Order, lines: &[OrderLine]) -> String {
    serde_json::to_string(&OrderWithLines::new(order.clone(), lines.to_vec())).expect("a view is representable")
}

/// Returns the response (200) with an order and its lines, and with the version of the order as `ETag`.
fn order_response(order: &Order, lines: &[OrderLine]) -> Response {
    json_response(StatusCode::OK, StoredResponse { json: order_json(order, lines), version: order.version })
}

/// List the orders of all customers
///
/// Sorted by the time of the payment, oldest first.
#[utoipa::path(
    get,
    path = "/orders",
    operation_id = "list_orders",
    tag = "orders",
    params(OrdersQuery),
    responses((status = 200, description = "A list page of orders", body = ListView<OrderView>))
)]
pub async fn list_orders(
    State(api): State<OrdersApi>,
    _: OperatorAccess,
    Query(query): Query<OrdersQuery>,
) -> Result<Json<ListView<OrderView>>, DeskProblem> {
    let (statuses, days, paging) = query.into_statuses_days_and_paging(OrderList::All)?;
    let table = &api.desk.table;
    // Read the current number of buckets: it may have been raised after this process started.
    let buckets = table.get_or_store_buckets(api.desk.buckets()).await?;
    Ok(Json(ListView::from_page(
        table.orders_of_all_customers(&statuses, days, buckets, &paging).await?,
        OrderView::from,
    )?))
}

/// Rank the representatives
///
/// Ranks the representatives by the total amount of the orders that are credited to them in a quarter, largest total
/// first.
#[utoipa::path(
    get,
    path = "/orders/ranking",
    operation_id = "get_ranking",
    tag = "orders",
    params(RankingQuery),
    responses((
        status = 200,
        description = "All representatives with a total in this quarter and currency",
        body = ListView<QuarterTotalView>
    ))
)]
pub async fn get_order_ranking(
    State(api): State<OrdersApi>,
    _: OperatorAccess,
    Query(RankingQuery { quarter, currency }): Query<RankingQuery>,
) -> Result<Json<ListView<QuarterTotalView>>, DeskProblem> {
    Ok(Json(ListView::single_page(api.desk.table.get_ranking(quarter, currency).await?, QuarterTotalView::from)))
}

/// Get an order
///
/// Returns the order with its lines. If you send the `ETag` of the response as `If-Match` with a later change, the
/// change is refused if the order has changed in between.
#[utoipa::path(
    get,
    path = "/orders/{order}",
    operation_id = "get_order",
    tag = "orders",
    params(OrderPath),
    responses((status = 200, description = "The order in its current status", body = OrderWithLines,
        headers(("ETag" = String, description = "The version of the order, in double quotes"))))
)]
pub async fn get_order(
    State(api): State<OrdersApi>,
    caller: Caller,
    Path(OrderPath { order }): Path<OrderPath>,
    _: Query<NoParameters>,
) -> Result<Response, DeskProblem> {
    let (order, lines) =
        api.desk.table.get_order(order.ok_or_else(order_not_found)?).await?.ok_or_else(order_not_found)?;
    caller.check_access(&order.customer).map_err(|_| order_not_found())?;
    Ok(order_response(&order, &lines))
}

/// Advance an order
///
/// Picks, ships, delivers, returns or cancels the order. When an order is cancelled or returned, its products are added
/// to the stock of the warehouse again, unless the returned products are not sellable. Within a few minutes after the
/// response, the stock is reserved for backordered orders that contain these products, oldest first. The step `ship`
/// accepts the carrier and the tracking number of the parcel.
#[utoipa::path(
    post,
    path = "/orders/{order}/{step}",
    operation_id = "advance_order",
    tag = "orders",
    params(StepPath, IdempotencyKey, IfMatch),
    request_body = StepFields,
    responses((status = 200, description = "The order in its new status", body = OrderWithLines,
        headers(("ETag" = String, description = "The version of the order, in double quotes"))))
)]
#[expect(clippy::too_many_arguments, reason = "each is an extractor")]
pub async fn advance_order(
    DeskForCaller(desk): DeskForCaller,
    now: RequestTime,
    _: OperatorAccess,
    Path(StepPath { order, step }): Path<StepPath>,
    _: Query<NoParameters>,
    if_match: IfMatch,
    key: IdempotencyKey,
    body: Body<StepFields>,
) -> Result<Response, DeskProblem> {
    let id = order.ok_or_else(order_not_found)?;
    let request = key.idempotent_request(&body.hash, now.at);
    let step = step.to_order_step(body.value)?;
    let precondition = |order: &Order| check_version(&if_match, order.version);
    match desk.advance_idempotent(id, &step, request.as_ref(), order_json, precondition).await? {
        AdvanceOutcome::Done(order, lines) => Ok(order_response(&order, &lines)),
        AdvanceOutcome::Replayed(replayed) => Ok(replay_response(replayed, StatusCode::OK)?),
    }
}

/// The products that an order will have.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutOrderLines)]
pub struct OrderLinesFields {
    /// The products to ship: 1 to 20, each listed once.
    #[schema(min_items = 1, max_items = 20)]
    lines: Vec<LineFields>,
}

/// Change the products of an order
///
/// Replaces the products of a backordered or open order by the products in `lines`. If the order is open, its new
/// products are deducted from the stock of its warehouse, and the replaced products are added to this stock again. The
/// amount of the order does not change. Within a few minutes, the order desk tries to fill the backordered orders for
/// which products became available, and the order itself if it is backordered.
#[utoipa::path(
    put,
    path = "/orders/{order}/lines",
    operation_id = "put_order_lines",
    tag = "orders",
    params(OrderPath, IfMatch),
    request_body = OrderLinesFields,
    responses((status = 200, description = "The order with its new products", body = OrderWithLines,
        headers(("ETag" = String, description = "The version of the order, in double quotes"))))
)]
pub async fn change_order_lines(
    DeskForCaller(desk): DeskForCaller,
    _: OperatorAccess,
    Path(OrderPath { order }): Path<OrderPath>,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<OrderLinesFields>,
) -> Result<Response, DeskProblem> {
    let id = order.ok_or_else(order_not_found)?;
    let lines: Vec<OrderLine> = body.value.lines.into_iter().map(OrderLine::from).collect();
    let order = desk.change_lines(id, &lines, |order| check_version(&if_match, order.version)).await?;
    Ok(order_response(&order, &order.lines))
}

/// Correct the address of an order
///
/// Changes the address to which an order will be shipped. An operator can change it until the order is shipped, and the
/// account that paid until the order is picked. The address of the customer and the addresses of other orders do not
/// change. If the order waits for an address, the order desk tries to fill it within a few minutes.
#[utoipa::path(
    put,
    path = "/orders/{order}/address",
    operation_id = "put_order_address",
    tag = "orders",
    params(OrderPath, IfMatch),
    request_body = AddressView,
    responses((status = 200, description = "The order with the corrected address", body = OrderWithLines,
        headers(("ETag" = String, description = "The version of the order, in double quotes"))))
)]
pub async fn correct_order_address(
    DeskForCaller(desk): DeskForCaller,
    caller: Caller,
    Path(OrderPath { order }): Path<OrderPath>,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<AddressView>,
) -> Result<Response, DeskProblem> {
    let id = order.ok_or_else(order_not_found)?;
    let precondition = |order: &Order| {
        caller.check_access(&order.customer).map_err(|_| order_not_found())?;
        caller.check_action(AccountAction::Address)?;
        if order.status == OrderStatus::Picked && !caller.is_operator() {
            return Err(
                Problem::conflict("the order is picked already; ask the merchant to correct its address").into()
            );
        }
        check_version(&if_match, order.version)
    };
    let (order, lines) = desk.correct_address(id, body.value.into(), precondition).await?;
    Ok(order_response(&order, &lines))
}
