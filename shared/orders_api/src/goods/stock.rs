//! `/products/{product}/counts`, `/write-offs`, `/transfers` and `/movements`: changes of the stock that people request, and
//! the lists of the recorded movements of a product and of an order. Only for operators.

use axum::Json;
use axum::extract::State;
use billing::Label;
use chrono::{DateTime, Utc};
use orders::{
    MAX_QUANTITY, Movement, MovementKind, MovementRequest, OrderMovement, OrderMovementLine, ProductId, StockEffect,
    WarehouseId,
};
use orders_desk::{DeskError, OrderDesk};
use orders_table::OrdersTable;
use rest::body::Body;
use rest::list::ListView;
use rest::openapi::UlidText;
use rest::parameters::{NoParameters, PageQuery, Path, Query};
use rest::{OperatorAccess, Problem};
use serde::{Deserialize, Serialize};
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use crate::OrdersApi;
use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::DeskProblem;
use crate::fulfilment::lines::Quantity;
use crate::goods::products::product_not_found;
use crate::parameters::{OrderPath, ProductPath, order_not_found};

/// The path parameters for a movement of a product.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct MovementPath {
    /// The merchant's identifier of the product.
    product: ProductId,
    /// The identifier of this movement: a new ULID that you generate.
    #[param(inline, value_type = UlidText)]
    movement: String,
}

/// The number of pieces that were found when the stock was counted, from 0 to 1,000,000,000.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[schema(minimum = 0, maximum = 1_000_000_000)]
pub struct FoundQuantity(u64);

/// A count of the stock of a product in a warehouse.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CountStock)]
pub struct CountFields {
    /// The merchant's identifier of the warehouse.
    warehouse: WarehouseId,
    /// The number of pieces that were found, without those that are reserved for orders.
    found: FoundQuantity,
    /// Why the stock was counted, or why it differs.
    reason: Label,
}

/// Pieces of a product that are lost or broken.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WriteOffStock)]
pub struct WriteOffFields {
    /// The merchant's identifier of the warehouse.
    warehouse: WarehouseId,
    /// The number of pieces.
    quantity: Quantity,
    /// Why the pieces cannot be sold.
    reason: Label,
}

/// Pieces of a product that are moved to another warehouse.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TransferStock)]
pub struct TransferFields {
    /// The warehouse in which the pieces are.
    warehouse: WarehouseId,
    /// The warehouse that gets the pieces.
    to_warehouse: WarehouseId,
    /// The number of pieces.
    quantity: Quantity,
    /// Why the pieces are moved.
    #[serde(default)]
    reason: Option<Label>,
}

/// A recorded change of the stock of a product.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Movement)]
pub struct MovementView {
    /// The identifier of the movement.
    #[schema(value_type = UlidText)]
    id: Ulid,
    /// The kind of the movement.
    kind: MovementKind,
    /// The merchant's identifier of the product.
    product: ProductId,
    /// The merchant's identifier of the warehouse.
    warehouse: WarehouseId,
    /// The warehouse that got the pieces of a transfer; null for every other kind.
    to_warehouse: Option<WarehouseId>,
    /// The number of pieces: for a count those that were found, otherwise those that were moved.
    quantity: u64,
    /// The change of the stock in `warehouse`; negative if it became smaller. A transfer changed the stock in `to_warehouse`
    /// by the opposite.
    stock_change: i64,
    /// Why the stock was changed; null if no reason was given.
    reason: Option<Label>,
    /// When the movement was recorded.
    recorded_at: DateTime<Utc>,
}

/// A recorded movement of the products of an order between its warehouse and its customer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderMovement)]
pub struct OrderMovementView {
    /// The version that the order had after the change that caused this stock movement.
    version: u64,
    /// The effect of the change on the stock: `deducted` when the order was filled, `restored` when it was cancelled or
    /// returned, `written_off` when the returned products were not sellable, `exchanged` when other products replaced them.
    effect: StockEffect,
    /// The merchant's identifier of the warehouse.
    warehouse: WarehouseId,
    /// The products that moved.
    lines: Vec<OrderMovementLineView>,
    /// When the movement was recorded.
    recorded_at: DateTime<Utc>,
}

/// The movement of one product of an order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderMovementLine)]
pub struct OrderMovementLineView {
    /// The merchant's identifier of the product.
    product: ProductId,
    /// The number of pieces in the order after the change; 0 if another product replaced the product.
    quantity: u32,
    /// The change of the stock, in pieces; negative if the stock became smaller.
    stock_change: i64,
}

impl From<OrderMovement> for OrderMovementView {
    fn from(OrderMovement { version, effect, at, warehouse, lines, .. }: OrderMovement) -> Self {
        let line = |OrderMovementLine { product, quantity, stock_change }| OrderMovementLineView {
            product,
            quantity,
            stock_change,
        };
        Self { version, effect, warehouse, lines: lines.into_iter().map(line).collect(), recorded_at: at }
    }
}

impl From<Movement> for MovementView {
    fn from(movement: Movement) -> Self {
        let Movement { id, product, kind, at, warehouse, to, quantity, stock_change, reason } = movement;
        Self { id, kind, product, warehouse, to_warehouse: to, quantity, stock_change, reason, recorded_at: at }
    }
}

/// Changes the stock as `request` requests, and returns the recorded movement. `path` contains the product and the
/// identifier of the movement.
async fn move_stock(
    desk: &OrderDesk,
    path: MovementPath,
    request: &MovementRequest,
) -> Result<Json<MovementView>, DeskProblem> {
    let MovementPath { product, movement } = path;
    let id: Ulid = movement.parse().map_err(|_| Problem::invalid_field("movement", "must be a ULID"))?;
    match desk.move_stock(&product, id, request).await {
        // The product is part of the path of the request, so the status of the response is 404 instead of 422.
        Err(DeskError::NoProduct(_)) => Err(product_not_found().into()),
        Err(error @ DeskError::NoWarehouse(_)) if matches!(&error, DeskError::NoWarehouse(missing) if Some(missing) == request.target_warehouse()) => {
            Err(Problem::refused_field("to_warehouse", error).into())
        }
        moved => Ok(Json(moved?.into())),
    }
}

/// Count the stock of a product
///
/// Sets the stock of the product in the warehouse to the number of pieces that were found. Pieces that are reserved for orders
/// are not part of the stock, so do not count them: pick the open orders first, and count what is left. A repeated request
/// changes nothing. A request with the identifier of an earlier movement, but with other values, is rejected (422).
#[utoipa::path(
    put,
    path = "/products/{product}/counts/{movement}",
    operation_id = "count_stock",
    tag = "products",
    params(MovementPath),
    request_body = CountFields,
    responses((status = 200, description = "The stock is the number of pieces that were found", body = MovementView))
)]
pub async fn count_stock(
    DeskForCaller(desk): DeskForCaller,
    Path(path): Path<MovementPath>,
    _: OperatorAccess,
    _: Query<NoParameters>,
    body: Body<CountFields>,
) -> Result<Json<MovementView>, DeskProblem> {
    let CountFields { warehouse, found: FoundQuantity(found), reason } = body.value;
    if found > MAX_QUANTITY {
        return Err(Problem::invalid_field("found", format!("must be from 0 to {MAX_QUANTITY}, not {found}")).into());
    }
    move_stock(&desk, path, &MovementRequest::Count { warehouse, found, reason }).await
}

/// Write off stock of a product
///
/// Subtracts pieces that are lost or broken from the stock of the warehouse. Fails (409) if the stock is smaller. A repeated
/// request changes nothing. A request with the identifier of an earlier movement, but with other values, is rejected (422).
#[utoipa::path(
    put,
    path = "/products/{product}/write-offs/{movement}",
    operation_id = "write_off_stock",
    tag = "products",
    params(MovementPath),
    request_body = WriteOffFields,
    responses((status = 200, description = "The pieces are subtracted from the stock", body = MovementView))
)]
pub async fn write_off_stock(
    DeskForCaller(desk): DeskForCaller,
    Path(path): Path<MovementPath>,
    _: OperatorAccess,
    _: Query<NoParameters>,
    body: Body<WriteOffFields>,
) -> Result<Json<MovementView>, DeskProblem> {
    let WriteOffFields { warehouse, quantity, reason } = body.value;
    let quantity = quantity.to_checked_number()?;
    move_stock(&desk, path, &MovementRequest::WriteOff { warehouse, quantity, reason }).await
}

/// Transfer stock of a product
///
/// Moves pieces from the stock of a warehouse to the stock of another warehouse. Fails (409) if the stock is smaller. A
/// repeated request changes nothing. A request with the identifier of an earlier movement, but with other values, is rejected
/// (422).
#[utoipa::path(
    put,
    path = "/products/{product}/transfers/{movement}",
    operation_id = "transfer_stock",
    tag = "products",
    params(MovementPath),
    request_body = TransferFields,
    responses((status = 200, description = "The pieces are part of the stock of the other warehouse", body = MovementView))
)]
pub async fn transfer_stock(
    DeskForCaller(desk): DeskForCaller,
    Path(path): Path<MovementPath>,
    _: OperatorAccess,
    _: Query<NoParameters>,
    body: Body<TransferFields>,
) -> Result<Json<MovementView>, DeskProblem> {
    let TransferFields { warehouse: from, to_warehouse: to, quantity, reason } = body.value;
    let quantity = quantity.to_checked_number()?;
    move_stock(&desk, path, &MovementRequest::Transfer { from, to, quantity, reason }).await
}

/// List the movements of a product
///
/// The changes of the stock that people and programs requested: deliveries, counts, write-offs and transfers. They are
/// sorted by the time in the identifier (a ULID), newest first. The products of orders also change the stock;
/// `GET /products/{product}/orders` lists these orders, and `GET /orders/{order}/movements` the movements of an order.
#[utoipa::path(
    get,
    path = "/products/{product}/movements",
    operation_id = "list_movements",
    tag = "products",
    params(ProductPath, PageQuery),
    responses((status = 200, description = "A list page of movements", body = ListView<MovementView>))
)]
pub async fn list_movements(
    State(api): State<OrdersApi>,
    Path(ProductPath { product }): Path<ProductPath>,
    _: OperatorAccess,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<MovementView>>, DeskProblem> {
    let paging = page.paging(|text| OrdersTable::cursor_of_movements(&product, text))?;
    let page = api.desk.table.movements_of_product(&product, &paging).await?;
    if page.is_empty() && api.desk.table.get_product(&product).await?.is_none() {
        return Err(product_not_found().into());
    }
    Ok(Json(ListView::from_page(page, MovementView::from)?))
}

/// List the movements of an order
///
/// The changes of the stock by the products of the order, newest first: when it was filled, when its products were changed, and
/// when it was cancelled or returned.
#[utoipa::path(
    get,
    path = "/orders/{order}/movements",
    operation_id = "list_order_movements",
    tag = "orders",
    params(OrderPath, PageQuery),
    responses((status = 200, description = "A list page of movements", body = ListView<OrderMovementView>))
)]
pub async fn list_order_movements(
    State(api): State<OrdersApi>,
    Path(OrderPath { order }): Path<OrderPath>,
    _: OperatorAccess,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<OrderMovementView>>, DeskProblem> {
    let order = order.ok_or_else(order_not_found)?;
    let paging = page.paging(|text| OrdersTable::cursor_of_order_movements(order, text))?;
    let page = api.desk.table.movements_of_order(order, &paging).await?;
    if page.is_empty() && api.desk.table.get_order(order).await?.is_none() {
        return Err(order_not_found().into());
    }
    Ok(Json(ListView::from_page(page, OrderMovementView::from)?))
}
