//! `/skus/{sku}`: the set of products that a SKU stands for. Only for operators.

use axum::Json;
use axum::extract::State;
use billing::Sku;
use orders::OrderLine;
use rest::body::Body;
use rest::parameters::{NoParameters, Path, Query};
use rest::{AdminAccess, OperatorAccess};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::OrdersApi;
use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::DeskProblem;
use crate::fulfilment::lines::{LineFields, LineView};

/// The path parameter for a SKU.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct SkuPath {
    /// The SKU of a subscription. It stands for a set of products.
    sku: Sku,
}

/// The set of products that the SKU stands for from now on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutSku)]
pub struct SkuFields {
    /// The products to ship for each paid month of a subscription with this SKU: at most 20, each listed once. If the
    /// list is empty, nothing is shipped for this SKU.
    #[schema(max_items = 20)]
    lines: Vec<LineFields>,
}

/// A SKU, and the set of products that it stands for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sku)]
pub struct SkuView {
    /// The SKU.
    sku: Sku,
    /// The products that are shipped for each paid month of a subscription with this SKU, and their quantities. Empty
    /// if nothing is shipped.
    lines: Vec<LineView>,
}

/// Set the products of a SKU
///
/// A SKU of a subscription stands for a set of products, which are shipped for each paid month. This request replaces
/// the set for orders that are placed later. Existing orders do not change, and months that were paid while the SKU had no products
/// get no orders.
#[utoipa::path(
    put,
    path = "/skus/{sku}",
    operation_id = "put_sku",
    tag = "products",
    params(SkuPath),
    request_body = SkuFields,
    responses((status = 200, description = "The SKU has the requested products now", body = SkuView))
)]
pub async fn put_sku(
    DeskForCaller(desk): DeskForCaller,
    Path(SkuPath { sku }): Path<SkuPath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    body: Body<SkuFields>,
) -> Result<Json<SkuView>, DeskProblem> {
    let lines: Vec<OrderLine> = body.value.lines.into_iter().map(OrderLine::from).collect();
    desk.set_lines_of_sku(&sku, &lines).await?;
    Ok(Json(SkuView { sku, lines: lines.into_iter().map(LineView::from).collect() }))
}

/// Get the products of a SKU
///
/// A SKU of a subscription stands for a set of products, which are shipped for each paid month. The list is empty if
/// nothing is shipped for this SKU, or if the order desk does not know the SKU.
#[utoipa::path(
    get,
    path = "/skus/{sku}",
    operation_id = "get_sku",
    tag = "products",
    params(SkuPath),
    responses((status = 200, description = "The SKU, and the products to ship for each paid month", body = SkuView))
)]
pub async fn get_sku(
    State(api): State<OrdersApi>,
    Path(SkuPath { sku }): Path<SkuPath>,
    _: OperatorAccess,
    _: Query<NoParameters>,
) -> Result<Json<SkuView>, DeskProblem> {
    let lines = api.desk.table.lines_of_sku(&sku).await?;
    Ok(Json(SkuView { sku, lines: lines.into_iter().map(LineView::from).collect() }))
}
