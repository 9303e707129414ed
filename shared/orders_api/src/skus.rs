//! `/skus/{sku}`: what a SKU is made of. For the operator.

use ::orders::{OrderLine, ProductId};
use axum::Json;
use axum::extract::State;
use billing::Sku;
use rest::Problem;
use rest::body::Body;
use rest::caller::Operator;
use rest::parameters::{NoParameters, Path, Query};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::OrdersApi;
use super::orders::LineView;
use super::products::Quantity;

/// A SKU.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct SkuPath {
    /// The SKU, as subscriptions name it.
    sku: Sku,
}

/// What a SKU is to be made of.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutSku)]
pub struct SkuFields {
    /// At most 20 products, each once; none, if nothing is shipped for it any more.
    #[schema(max_items = 20)]
    lines: Vec<LineFields>,
}

/// So many of a product.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutLine)]
pub struct LineFields {
    /// The product.
    product: ProductId,
    /// How many of it.
    #[schema(value_type = Quantity)]
    quantity: u32,
}

/// What a SKU is made of.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sku)]
pub struct SkuView {
    /// The SKU.
    sku: Sku,
    /// What is shipped for each paid month of it.
    lines: Vec<LineView>,
}

/// Say what a SKU is made of
///
/// Of months that are paid from now on: orders that were placed stay as they are.
#[utoipa::path(
    put,
    path = "/skus/{sku}",
    operation_id = "put_sku",
    tag = "products",
    params(SkuPath),
    request_body = SkuFields,
    responses((status = 200, description = "It is now as asked for", body = SkuView))
)]
pub async fn put(
    State(api): State<OrdersApi>,
    Path(SkuPath { sku }): Path<SkuPath>,
    _: Operator,
    _: Query<NoParameters>,
    body: Body<SkuFields>,
) -> Result<Json<SkuView>, Problem> {
    let line = |LineFields { product, quantity }| OrderLine { product, quantity };
    let lines: Vec<OrderLine> = body.value.lines.into_iter().map(line).collect();
    api.desk.set_lines(&sku, &lines).await?;
    Ok(Json(SkuView { sku, lines: lines.into_iter().map(LineView::from).collect() }))
}

/// Read what a SKU is made of
///
/// None, if nothing is shipped for it.
#[utoipa::path(
    get,
    path = "/skus/{sku}",
    operation_id = "get_sku",
    tag = "products",
    params(SkuPath),
    responses((status = 200, description = "What is shipped for each paid month of it", body = SkuView))
)]
pub async fn read(
    State(api): State<OrdersApi>,
    Path(SkuPath { sku }): Path<SkuPath>,
    _: Operator,
    _: Query<NoParameters>,
) -> Result<Json<SkuView>, Problem> {
    let lines = api.desk.table.lines_of(&sku).await?;
    Ok(Json(SkuView { sku, lines: lines.into_iter().map(LineView::from).collect() }))
}
