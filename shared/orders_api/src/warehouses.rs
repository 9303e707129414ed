//! `/warehouses`: where orders are shipped from. For the operator.

use ::orders::{OrdersTable, PlaceId, Warehouse, WarehouseId, Written};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::Label;
use rest::Problem;
use rest::body::Body;
use rest::caller::Operator;
use rest::etag::{IfMatch, WithETag};
use rest::list::ListView;
use rest::parameters::{NoParameters, PageQuery, Path, Query};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::OrdersApi;
use super::employee_view::EmployeeView;
use super::parameters::WarehousePath;

/// A warehouse as it is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutWarehouse)]
pub struct WarehouseFields {
    /// What it is called.
    name: Label,
    /// The region whose customers it serves first.
    region: PlaceId,
}

/// A warehouse.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Warehouse)]
pub struct WarehouseView {
    /// The merchant's identifier of it.
    id: WarehouseId,
    /// What it is called.
    name: Label,
    /// The region whose customers it serves first.
    region: PlaceId,
}

impl From<Warehouse> for WarehouseView {
    fn from(Warehouse { id, name, region, .. }: Warehouse) -> Self {
        Self { id, name, region }
    }
}

fn no_warehouse() -> Problem {
    Problem::not_found("there is no such warehouse")
}

/// List the warehouses
///
/// All of them, in the order of their ids.
#[utoipa::path(
    get,
    path = "/warehouses",
    operation_id = "list_warehouses",
    tag = "warehouses",
    responses((status = 200, description = "All of them", body = ListView<WarehouseView>))
)]
pub async fn list(
    State(api): State<OrdersApi>,
    _: Operator,
    _: Query<NoParameters>,
) -> Result<Json<ListView<WarehouseView>>, Problem> {
    Ok(Json(ListView::whole(api.desk.table.warehouses().await?, WarehouseView::from)))
}

/// Create or change a warehouse
///
/// Gives it a name and a region.
#[utoipa::path(
    put,
    path = "/warehouses/{warehouse}",
    operation_id = "put_warehouse",
    tag = "warehouses",
    params(WarehousePath, IfMatch),
    request_body = WarehouseFields,
    responses(
        (status = 200, description = "It was there, and is now as asked for", body = WarehouseView,
            headers(("ETag" = String, description = "Its version, in quotes"))),
        (status = 201, description = "It is created", body = WarehouseView,
            headers(("ETag" = String, description = "Its version, in quotes")))
    )
)]
pub async fn put(
    State(api): State<OrdersApi>,
    Path(WarehousePath { warehouse: id }): Path<WarehousePath>,
    _: Operator,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<WarehouseFields>,
) -> Result<(StatusCode, WithETag<Json<WarehouseView>>), Problem> {
    let WarehouseFields { name, region } = body.value;
    let table = &api.desk.table;
    let stored = table.warehouse(&id).await?;
    if_match.allows_any(stored.as_ref().map(|stored| stored.version))?;
    let (status, written, warehouse) = match stored {
        None => {
            let new = Warehouse { id, name, region, version: 1 };
            (StatusCode::CREATED, table.create_warehouse(&new).await?, new)
        }
        Some(stored) if stored.name == name && stored.region == region => (StatusCode::OK, Written::Done, stored),
        Some(stored) => {
            let after = Warehouse { name, region, version: stored.version.saturating_add(1), ..stored.clone() };
            (StatusCode::OK, table.change_warehouse(&stored, &after).await?, after)
        }
    };
    match written {
        Written::Done => Ok((status, WithETag(warehouse.version, Json(WarehouseView::from(warehouse))))),
        Written::Refused(_) => Err(Problem::in_progress()),
    }
}

/// Read a warehouse
///
/// Its name and region. Its `ETag` is what `If-Match` takes.
#[utoipa::path(
    get,
    path = "/warehouses/{warehouse}",
    operation_id = "get_warehouse",
    tag = "warehouses",
    params(WarehousePath),
    responses((status = 200, description = "The warehouse", body = WarehouseView,
        headers(("ETag" = String, description = "Its version, in quotes"))))
)]
pub async fn read(
    State(api): State<OrdersApi>,
    Path(WarehousePath { warehouse }): Path<WarehousePath>,
    _: Operator,
    _: Query<NoParameters>,
) -> Result<WithETag<Json<WarehouseView>>, Problem> {
    let stored = api.desk.table.warehouse(&warehouse).await?.ok_or_else(no_warehouse)?;
    Ok(WithETag(stored.version, Json(WarehouseView::from(stored))))
}

/// List the employees of a warehouse
///
/// In the order of their ids.
#[utoipa::path(
    get,
    path = "/warehouses/{warehouse}/employees",
    operation_id = "list_warehouse_employees",
    tag = "warehouses",
    params(WarehousePath, PageQuery),
    responses((status = 200, description = "A page of them", body = ListView<EmployeeView>))
)]
pub async fn employees(
    State(api): State<OrdersApi>,
    Path(WarehousePath { warehouse }): Path<WarehousePath>,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<EmployeeView>>, Problem> {
    let paging = page.paging(OrdersTable::cursor_of_employees)?;
    let page = api.desk.table.employees_of_warehouse(&warehouse, &paging).await?;
    if page.is_empty() && api.desk.table.warehouse(&warehouse).await?.is_none() {
        return Err(no_warehouse());
    }
    Ok(Json(ListView::of(api.desk.table.read_each(page, OrdersTable::employee).await?, EmployeeView::from)?))
}
