//! `/products`: products and their stock. Only for operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::Label;
use chrono::{DateTime, Utc};
use futures::future::try_join;
use orders::{OrderId, OrderStatus, Product, ProductId, Stock, WarehouseId};
use orders_desk::DeskError;
use orders_table::{OrderList, OrdersTable, ProductOrder, WriteOutcome};
use rest::body::Body;
use rest::etag::{IfMatch, WithETag};
use rest::list::ListView;
use rest::openapi::UlidText;
use rest::parameters::{NoParameters, PageQuery, Path, Query};
use rest::{AdminAccess, OperatorAccess, Problem, RequestTime};
use serde::{Deserialize, Serialize};
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use crate::OrdersApi;
use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::DeskProblem;
use crate::fulfilment::lines::Quantity;
use crate::parameters::{OrdersQuery, ProductPath};

/// The data of a product to create or rename.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutProduct)]
pub struct ProductFields {
    /// The name of the product.
    name: Label,
}

/// A product that is kept in warehouses and shipped to customers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Product)]
pub struct ProductView {
    /// The merchant's identifier of the product.
    id: ProductId,
    /// The name of the product.
    name: Label,
    /// The number of pieces in all warehouses together, without those that are reserved for orders.
    total_stock: u64,
    /// When the product was created.
    created_at: DateTime<Utc>,
}

/// A product with its stock in each warehouse.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProductWithStock)]
pub struct ProductWithStock {
    #[serde(flatten)]
    #[schema(inline)]
    product: ProductView,
    /// The stock in each warehouse.
    stock: Vec<StockView>,
}

/// The stock of a product in a warehouse.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stock)]
pub struct StockView {
    /// The merchant's identifier of the warehouse.
    warehouse: WarehouseId,
    /// The number of pieces, without those that are reserved for orders.
    quantity: u64,
}

/// An order that contains a given product.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderOfProduct)]
pub struct ProductOrderView {
    /// The identifier of the order.
    id: OrderId,
    /// The status of the order.
    status: OrderStatus,
    /// When the payment was made.
    placed_at: DateTime<Utc>,
    /// The number of pieces of the product in the order.
    #[schema(value_type = Quantity)]
    quantity: u32,
}

/// The path parameters for a delivery of a product to a warehouse.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct StockDeliveryPath {
    /// The merchant's identifier of the product.
    product: ProductId,
    /// The identifier of this delivery: a new ULID that you generate.
    #[param(inline, value_type = UlidText)]
    delivery: String,
}

/// A delivery of a product that arrived in a warehouse.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReceiveDelivery)]
pub struct DeliveryFields {
    /// The merchant's identifier of the warehouse.
    warehouse: WarehouseId,
    /// The number of pieces.
    quantity: Quantity,
}

/// A delivery that was added to the stock of a warehouse.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StockDelivery)]
pub struct StockDeliveryView {
    /// The identifier of the delivery.
    #[schema(value_type = UlidText)]
    id: Ulid,
    /// The merchant's identifier of the product.
    product: ProductId,
    /// The merchant's identifier of the warehouse.
    warehouse: WarehouseId,
    /// The number of pieces.
    #[schema(value_type = Quantity)]
    quantity: u64,
}

impl From<Product> for ProductView {
    fn from(Product { id, name, total_stock, created_at, .. }: Product) -> Self {
        Self { id, name, total_stock, created_at }
    }
}

impl From<Stock> for StockView {
    fn from(Stock { warehouse, quantity, .. }: Stock) -> Self {
        Self { warehouse, quantity }
    }
}

impl From<ProductOrder> for ProductOrderView {
    fn from(ProductOrder { order, status, placed_at, quantity }: ProductOrder) -> Self {
        Self { id: order, status, placed_at, quantity }
    }
}

/// Returns the problem response (404) for a product that does not exist.
pub(crate) fn product_not_found() -> Problem {
    Problem::not_found("there is no such product")
}

/// List the products
///
/// Sorted by id.
#[utoipa::path(
    get,
    path = "/products",
    operation_id = "list_products",
    tag = "products",
    params(PageQuery),
    responses((status = 200, description = "A list page of products", body = ListView<ProductView>))
)]
pub async fn list_products(
    State(api): State<OrdersApi>,
    _: OperatorAccess,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<ProductView>>, DeskProblem> {
    let page = api.desk.table.get_products(&page.paging(OrdersTable::cursor_of_products)?).await?;
    Ok(Json(ListView::from_page(api.desk.table.read_products(page).await?, ProductView::from)?))
}

/// Create or rename a product
///
/// A new product has no stock; add stock with deliveries.
#[utoipa::path(
    put,
    path = "/products/{product}",
    operation_id = "put_product",
    tag = "products",
    params(ProductPath, IfMatch),
    request_body = ProductFields,
    responses(
        (status = 200, description = "The product existed, and it has the requested name now", body = ProductView,
            headers(("ETag" = String, description = "The version of the product, in double quotes"))),
        (status = 201, description = "The product is created", body = ProductView,
            headers(("ETag" = String, description = "The version of the product, in double quotes")))
    )
)]
pub async fn create_or_rename_product(
    DeskForCaller(desk): DeskForCaller,
    now: RequestTime,
    Path(ProductPath { product: id }): Path<ProductPath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<ProductFields>,
) -> Result<(StatusCode, WithETag<Json<ProductView>>), DeskProblem> {
    let (table, name) = (&desk.table, body.value.name);
    let Some(stored) = table.get_product(&id).await? else {
        if_match.check_missing_item()?;
        let product = Product { id, name, total_stock: 0, created_at: now.at, version: 1 };
        return match table.create_product(&product).await? {
            WriteOutcome::Done => Ok((StatusCode::CREATED, WithETag(1, Json(ProductView::from(product))))),
            WriteOutcome::NoAccount | WriteOutcome::Refused(_) => Err(Problem::concurrent_change().into()),
        };
    };
    if_match.check_version(stored.version)?;
    if stored.name == name {
        return Ok((StatusCode::OK, WithETag(stored.version, Json(ProductView::from(stored)))));
    }
    match table.rename_product(&stored, &name).await? {
        WriteOutcome::Done => {
            let renamed = table.get_product(&id).await?.ok_or_else(product_not_found)?;
            Ok((StatusCode::OK, WithETag(renamed.version, Json(ProductView::from(renamed)))))
        }
        WriteOutcome::NoAccount | WriteOutcome::Refused(_) => Err(Problem::concurrent_change().into()),
    }
}

/// Get a product
///
/// Returns the product with its stock in each warehouse. The `ETag` changes when the product is renamed, but not when
/// its stock changes.
#[utoipa::path(
    get,
    path = "/products/{product}",
    operation_id = "get_product",
    tag = "products",
    params(ProductPath),
    responses((status = 200, description = "The product", body = ProductWithStock,
        headers(("ETag" = String, description = "The version of the product, in double quotes"))))
)]
pub async fn get_product(
    State(api): State<OrdersApi>,
    Path(ProductPath { product }): Path<ProductPath>,
    _: OperatorAccess,
    _: Query<NoParameters>,
) -> Result<WithETag<Json<ProductWithStock>>, DeskProblem> {
    let table = &api.desk.table;
    let (stored, stock) = try_join(table.get_product(&product), table.get_stock(&product, None)).await?;
    let stored = stored.ok_or_else(product_not_found)?;
    let (version, stock) = (stored.version, stock.into_iter().map(StockView::from).collect());
    Ok(WithETag(version, Json(ProductWithStock { product: stored.into(), stock })))
}

/// List the orders that contain a product
///
/// Sorted by the time of the payment, oldest first.
#[utoipa::path(
    get,
    path = "/products/{product}/orders",
    operation_id = "list_product_orders",
    tag = "products",
    params(ProductPath, OrdersQuery),
    responses((status = 200, description = "A list page of orders", body = ListView<ProductOrderView>))
)]
pub async fn list_product_orders(
    State(api): State<OrdersApi>,
    Path(ProductPath { product }): Path<ProductPath>,
    _: OperatorAccess,
    Query(query): Query<OrdersQuery>,
) -> Result<Json<ListView<ProductOrderView>>, DeskProblem> {
    let (statuses, days, paging) = query.into_statuses_days_and_paging(OrderList::OfProduct(&product))?;
    let page = api.desk.table.orders_of_product(&product, &statuses, days, &paging).await?;
    if page.is_empty() && api.desk.table.get_product(&product).await?.is_none() {
        return Err(product_not_found().into());
    }
    Ok(Json(ListView::from_page(page, ProductOrderView::from)?))
}

/// Receive a delivery of a product
///
/// Adds the delivery to the stock of the warehouse. Within a few minutes after the response, the stock is reserved for the
/// backordered orders that contain the product, oldest first. A repeated request adds nothing to the stock. A request with
/// the identifier of an earlier delivery, but with another quantity or warehouse, is rejected (422).
#[utoipa::path(
    put,
    path = "/products/{product}/deliveries/{delivery}",
    operation_id = "receive_delivery",
    tag = "products",
    params(StockDeliveryPath),
    request_body = DeliveryFields,
    responses((status = 200, description = "The delivered quantity is part of the stock", body = StockDeliveryView))
)]
pub async fn receive_delivery(
    DeskForCaller(desk): DeskForCaller,
    Path(StockDeliveryPath { product, delivery }): Path<StockDeliveryPath>,
    _: OperatorAccess,
    _: Query<NoParameters>,
    body: Body<DeliveryFields>,
) -> Result<Json<StockDeliveryView>, DeskProblem> {
    let delivery: Ulid = delivery.parse().map_err(|_| Problem::invalid_field("delivery", "must be a ULID"))?;
    let DeliveryFields { warehouse, quantity } = body.value;
    let quantity = quantity.to_checked_number()?;
    match desk.receive_stock(&product, &warehouse, quantity, delivery).await {
        // The product is part of the path of the request, so the status of the response is 404 instead of 422.
        Err(DeskError::NoProduct(_)) => Err(product_not_found().into()),
        received => Ok(received.map(|()| Json(StockDeliveryView { id: delivery, product, warehouse, quantity }))?),
    }
}
