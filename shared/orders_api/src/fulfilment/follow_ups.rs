//! `/orders/{order}/split` and `/orders/{order}/replacements`: follow-up orders of a month that is paid already.

use axum::http::StatusCode;
use axum::response::Response;
use billing::Label;
use dynamo::StoredResponse;
use orders::{Order, OrderLine};
use orders_desk::{CreatedFollowUp, FollowUpOutcome, ReplacementRequest};
use rest::body::Body;
use rest::etag::IfMatch;
use rest::idempotency::{IdempotencyKey, RequiredIdempotencyKey, json_response, replay_response};
use rest::parameters::{NoParameters, Path, Query};
use rest::{OperatorAccess, RequestTime};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::{DeskProblem, check_version};
use crate::fulfilment::lines::LineFields;
use crate::fulfilment::order_view::OrderWithLines;
use crate::parameters::{OrderPath, order_not_found};

/// The products that an order keeps when it is split.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SplitOrder)]
pub struct SplitFields {
    /// The products that the order keeps: a part of its products, each listed once. Required for an open order. If absent, a
    /// backordered order keeps the products that one warehouse has in stock.
    #[serde(default)]
    #[schema(min_items = 1, max_items = 20)]
    lines: Option<Vec<LineFields>>,
}

/// The products to send again, and the reason.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReplaceOrder)]
pub struct ReplacementFields {
    /// The reason why the products are sent again. The action log stores this text.
    reason: Label,
    /// The products to send again: products of the order, each listed once. Default: all products of the order.
    #[serde(default)]
    #[schema(min_items = 1, max_items = 20)]
    lines: Option<Vec<LineFields>>,
}

/// A follow-up order, and the order that it follows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FollowUp)]
pub struct FollowUpView {
    /// The order that was split or is replaced.
    order: OrderWithLines,
    /// The follow-up order.
    follow_up: OrderWithLines,
}

/// Converts the lines of a request into order lines.
fn convert_to_order_lines(lines: Option<Vec<LineFields>>) -> Option<Vec<OrderLine>> {
    lines.map(|lines| lines.into_iter().map(OrderLine::from).collect())
}

/// Returns the JSON of a new follow-up order and of the order that it follows.
fn follow_up_json(created: &CreatedFollowUp) -> String {
    let view = |order: &Order| OrderWithLines::new(order.clone(), order.lines.clone());
    let view = FollowUpView { order: view(&created.order), follow_up: view(&created.follow_up) };
    serde_json::to_string(&view).expect("a view is representable")
}

/// Returns the response (201) with the new follow-up order, or the saved response to an earlier request.
fn follow_up_response(outcome: FollowUpOutcome) -> Result<Response, DeskProblem> {
    match outcome {
        FollowUpOutcome::Created(created) => {
            let (json, version) = (follow_up_json(&created), created.order.version);
            Ok(json_response(StatusCode::CREATED, StoredResponse { json, version }))
        }
        FollowUpOutcome::Replayed(replayed) => Ok(replay_response(replayed, StatusCode::CREATED)?),
    }
}

/// Split an order
///
/// Splits a backordered or open order, so that a part of it can be shipped earlier. The order keeps the products in `lines`, and a
/// follow-up order gets the other products. If the order is open, both orders are open afterwards, in the same warehouse. If the
/// order is backordered, it becomes open if one warehouse has all products that it keeps; the order desk tries to fill the
/// follow-up order within a few minutes.
#[utoipa::path(
    post,
    path = "/orders/{order}/split",
    operation_id = "split_order",
    tag = "orders",
    params(OrderPath, IdempotencyKey, IfMatch),
    request_body = SplitFields,
    responses((status = 201, description = "The two orders", body = FollowUpView,
        headers(("ETag" = String, description = "The version of the order that was split, in double quotes"))))
)]
#[expect(clippy::too_many_arguments, reason = "each is an extractor")]
pub async fn split_order(
    DeskForCaller(desk): DeskForCaller,
    now: RequestTime,
    _: OperatorAccess,
    Path(OrderPath { order }): Path<OrderPath>,
    _: Query<NoParameters>,
    if_match: IfMatch,
    key: IdempotencyKey,
    body: Body<SplitFields>,
) -> Result<Response, DeskProblem> {
    let id = order.ok_or_else(order_not_found)?;
    let request = key.idempotent_request(&body.hash, now.at);
    let keep = convert_to_order_lines(body.value.lines);
    let precondition = |order: &Order| check_version(&if_match, order.version);
    follow_up_response(desk.split_order(id, keep.as_deref(), request.as_ref(), follow_up_json, precondition).await?)
}

/// Replace products of an order
///
/// Creates a follow-up order that sends products of an order again, without a payment, for example because the parcel was lost. The
/// order must be shipped, delivered or returned. The follow-up order is sent to the present address of the customer, and is filled
/// or backordered like a new order. For 48 hours, a repeated request with the same key and the same body creates no other order. It
/// gets the same response, but without addresses, carriers and tracking numbers.
#[utoipa::path(
    post,
    path = "/orders/{order}/replacements",
    operation_id = "replace_order",
    tag = "orders",
    params(OrderPath, RequiredIdempotencyKey),
    request_body = ReplacementFields,
    responses((status = 201, description = "The order and its replacement", body = FollowUpView,
        headers(("ETag" = String, description = "The version of the order that is replaced, in double quotes"))))
)]
pub async fn replace_order(
    DeskForCaller(desk): DeskForCaller,
    now: RequestTime,
    _: OperatorAccess,
    Path(OrderPath { order }): Path<OrderPath>,
    _: Query<NoParameters>,
    key: RequiredIdempotencyKey,
    body: Body<ReplacementFields>,
) -> Result<Response, DeskProblem> {
    let id = order.ok_or_else(order_not_found)?;
    let request = key.idempotent_request(&body.hash, now.at);
    let ReplacementFields { reason, lines } = body.value;
    let replacement = ReplacementRequest { lines: convert_to_order_lines(lines), reason };
    follow_up_response(desk.create_replacement(id, &replacement, request.as_ref(), follow_up_json).await?)
}
