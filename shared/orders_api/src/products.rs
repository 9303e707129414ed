//! `/products`: what is shipped, and how much of it is there. For the operator.

use ::orders::{
    DeskError, Filled, MAX_QUANTITY, OrderId, OrderStatus, OrdersTable, Product, ProductId, ProductOrder, Stock,
    WarehouseId, Written,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::{Label, SubscriptionId};
use chrono::{DateTime, Utc};
use futures::future::try_join;
use rest::body::Body;
use rest::caller::Operator;
use rest::etag::{IfMatch, WithETag};
use rest::list::ListView;
use rest::parameters::{NoParameters, PageQuery, Path, Query};
use rest::{Now, Problem};
use serde::{Deserialize, Serialize};
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use super::OrdersApi;
use super::parameters::{OrdersQuery, ProductPath};

/// A product as it is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutProduct)]
pub struct ProductFields {
    /// What it is called.
    name: Label,
}

/// A product.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Product)]
pub struct ProductView {
    /// The merchant's identifier of it.
    id: ProductId,
    /// What it is called.
    name: Label,
    /// How many lie in all warehouses, not counting those that are taken for orders.
    total_stock: u64,
    /// When it was created.
    created_at: DateTime<Utc>,
}

/// A product, and where it lies.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProductWithStock)]
pub struct ProductWithStock {
    #[serde(flatten)]
    #[schema(inline)]
    product: ProductView,
    /// How many lie where.
    stock: Vec<StockView>,
}

/// How many of a product lie in a warehouse.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stock)]
pub struct StockView {
    /// The warehouse.
    warehouse: WarehouseId,
    /// How many, not counting those that are taken for orders.
    quantity: u64,
}

/// An order of a product.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderOfProduct)]
pub struct ProductOrderView {
    /// The order.
    id: OrderId,
    /// How it stands.
    status: OrderStatus,
    /// When it was paid.
    placed_at: DateTime<Utc>,
    /// How many of the product.
    #[schema(value_type = Quantity)]
    quantity: u32,
}

/// A delivery of a product to a warehouse.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct DeliveryPath {
    /// The product.
    product: ProductId,
    /// A new ULID of your own that names this delivery.
    #[param(inline, value_type = SubscriptionId)]
    delivery: String,
}

/// A number of pieces.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[schema(minimum = 1, maximum = 1_000_000_000)]
pub struct Quantity(u64);

/// What has arrived.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReceiveDelivery)]
pub struct DeliveryFields {
    /// Where.
    warehouse: WarehouseId,
    /// How many.
    quantity: Quantity,
}

/// What became of orders that waited.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Filled)]
pub struct FilledView {
    /// So many are open now.
    filled: u32,
    /// So many wait still.
    still_waiting: u32,
    /// So many were not looked at, since it failed or took too long. They are within the hour.
    not_looked_at: u32,
}

impl From<Filled> for FilledView {
    fn from(Filled { filled, still_waiting, not_looked_at, failed }: Filled) -> Self {
        Self { filled, still_waiting, not_looked_at: not_looked_at.saturating_add(failed) }
    }
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

fn no_product() -> Problem {
    Problem::not_found("there is no such product")
}

/// List the products
///
/// In the order of their ids.
#[utoipa::path(
    get,
    path = "/products",
    operation_id = "list_products",
    tag = "products",
    params(PageQuery),
    responses((status = 200, description = "A page of them", body = ListView<ProductView>))
)]
pub async fn list(
    State(api): State<OrdersApi>,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<ProductView>>, Problem> {
    let page = api.desk.table.products(&page.paging(OrdersTable::cursor_of_products)?).await?;
    Ok(Json(ListView::of(api.desk.table.read_each(page, OrdersTable::product).await?, ProductView::from)?))
}

/// Create or rename a product
///
/// One that is new has no stock: that comes with deliveries.
#[utoipa::path(
    put,
    path = "/products/{product}",
    operation_id = "put_product",
    tag = "products",
    params(ProductPath, IfMatch),
    request_body = ProductFields,
    responses(
        (status = 200, description = "It was there, and is now as asked for", body = ProductView,
            headers(("ETag" = String, description = "Its version, in quotes"))),
        (status = 201, description = "It is created", body = ProductView,
            headers(("ETag" = String, description = "Its version, in quotes")))
    )
)]
pub async fn put(
    State(api): State<OrdersApi>,
    now: Now,
    Path(ProductPath { product: id }): Path<ProductPath>,
    _: Operator,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<ProductFields>,
) -> Result<(StatusCode, WithETag<Json<ProductView>>), Problem> {
    let (table, name) = (&api.desk.table, body.value.name);
    let Some(stored) = table.product(&id).await? else {
        if_match.allows_absence()?;
        let product = Product { id, name, total_stock: 0, created_at: now.at, version: 1 };
        return match table.create_product(&product).await? {
            Written::Done => Ok((StatusCode::CREATED, WithETag(1, Json(ProductView::from(product))))),
            Written::Refused(_) => Err(Problem::in_progress()),
        };
    };
    if_match.allows(stored.version)?;
    if stored.name == name {
        return Ok((StatusCode::OK, WithETag(stored.version, Json(ProductView::from(stored)))));
    }
    match table.rename_product(&stored, &name).await? {
        Written::Done => {
            let renamed = table.product(&id).await?.ok_or_else(no_product)?;
            Ok((StatusCode::OK, WithETag(renamed.version, Json(ProductView::from(renamed)))))
        }
        Written::Refused(_) => Err(Problem::in_progress()),
    }
}

/// Read a product
///
/// And how many of it lie where. Its `ETag` counts its names: stock changes without it.
#[utoipa::path(
    get,
    path = "/products/{product}",
    operation_id = "get_product",
    tag = "products",
    params(ProductPath),
    responses((status = 200, description = "The product", body = ProductWithStock,
        headers(("ETag" = String, description = "Its version, in quotes"))))
)]
pub async fn read(
    State(api): State<OrdersApi>,
    Path(ProductPath { product }): Path<ProductPath>,
    _: Operator,
    _: Query<NoParameters>,
) -> Result<WithETag<Json<ProductWithStock>>, Problem> {
    let table = &api.desk.table;
    let (stored, stock) = try_join(table.product(&product), table.stock(&product, None)).await?;
    let stored = stored.ok_or_else(no_product)?;
    let (version, stock) = (stored.version, stock.into_iter().map(StockView::from).collect());
    Ok(WithETag(version, Json(ProductWithStock { product: stored.into(), stock })))
}

/// List the orders of a product
///
/// The oldest first.
#[utoipa::path(
    get,
    path = "/products/{product}/orders",
    operation_id = "list_product_orders",
    tag = "products",
    params(ProductPath, OrdersQuery),
    responses((status = 200, description = "A page of them", body = ListView<ProductOrderView>))
)]
pub async fn orders(
    State(api): State<OrdersApi>,
    Path(ProductPath { product }): Path<ProductPath>,
    _: Operator,
    Query(query): Query<OrdersQuery>,
) -> Result<Json<ListView<ProductOrderView>>, Problem> {
    let (statuses, days, paging) = query.read()?;
    let page = api.desk.table.orders_of_product(&product, &statuses, days, &paging).await?;
    if page.is_empty() && api.desk.table.product(&product).await?.is_none() {
        return Err(no_product());
    }
    Ok(Json(ListView::of(page, ProductOrderView::from)?))
}

/// Receive a delivery
///
/// It counts once, however often it is told; told otherwise under the same name it is refused. Orders that have waited for the product are filled, the oldest first.
#[utoipa::path(
    put,
    path = "/products/{product}/deliveries/{delivery}",
    operation_id = "receive_delivery",
    tag = "products",
    params(DeliveryPath),
    request_body = DeliveryFields,
    responses((status = 200, description = "It is counted", body = FilledView))
)]
pub async fn receive(
    State(api): State<OrdersApi>,
    Path(DeliveryPath { product, delivery }): Path<DeliveryPath>,
    _: Operator,
    _: Query<NoParameters>,
    body: Body<DeliveryFields>,
) -> Result<Json<FilledView>, Problem> {
    let delivery: Ulid = delivery.parse().map_err(|_| Problem::field("delivery", "must be a ULID"))?;
    let DeliveryFields { warehouse, quantity: Quantity(quantity) } = body.value;
    if !(1..=MAX_QUANTITY).contains(&quantity) {
        return Err(Problem::field("quantity", format!("must be from 1 to {MAX_QUANTITY}, not {quantity}")));
    }
    let filled = match api.desk.receive(&product, &warehouse, quantity, delivery).await {
        // It is what the path names.
        Err(DeskError::NoProduct(_)) => return Err(no_product()),
        filled => filled?,
    };
    Ok(Json(filled.into()))
}
