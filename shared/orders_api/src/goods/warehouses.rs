//! `/warehouses`: the warehouses that orders are shipped from. Only for operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::Label;
use orders::{PlaceId, Warehouse, WarehouseId};
use orders_table::{EmployeeList, OrdersTable, WriteOutcome};
use rest::body::Body;
use rest::etag::{IfMatch, WithETag};
use rest::list::ListView;
use rest::parameters::{NoParameters, PageQuery, Path, Query};
use rest::{AdminAccess, OperatorAccess, Problem};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::OrdersApi;
use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::DeskProblem;
use crate::parameters::WarehousePath;
use crate::people::employee_view::EmployeeView;

/// The data of a warehouse to create or change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutWarehouse)]
pub struct WarehouseFields {
    /// The name of the warehouse.
    name: Label,
    /// The merchant's identifier of the region of the warehouse. Orders of customers in this region are shipped from a
    /// warehouse in this region, if possible.
    region: PlaceId,
}

/// A warehouse that orders are shipped from.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Warehouse)]
pub struct WarehouseView {
    /// The merchant's identifier of the warehouse.
    id: WarehouseId,
    /// The name of the warehouse.
    name: Label,
    /// The merchant's identifier of the region of the warehouse. Orders of customers in this region are shipped from a
    /// warehouse in this region, if possible.
    region: PlaceId,
}

impl From<Warehouse> for WarehouseView {
    fn from(Warehouse { id, name, region, .. }: Warehouse) -> Self {
        Self { id, name, region }
    }
}

/// Returns the problem response (404) for a warehouse that does not exist.
fn warehouse_not_found() -> Problem {
    Problem::not_found("there is no such warehouse")
}

/// List the warehouses
///
/// Returns all warehouses, sorted by id.
#[utoipa::path(
    get,
    path = "/warehouses",
    operation_id = "list_warehouses",
    tag = "warehouses",
    responses((status = 200, description = "All warehouses", body = ListView<WarehouseView>))
)]
pub async fn list_warehouses(
    State(api): State<OrdersApi>,
    _: OperatorAccess,
    _: Query<NoParameters>,
) -> Result<Json<ListView<WarehouseView>>, DeskProblem> {
    Ok(Json(ListView::single_page(api.desk.table.get_warehouses().await?, WarehouseView::from)))
}

/// Create or change a warehouse
///
/// Sets the name and the region of the warehouse.
#[utoipa::path(
    put,
    path = "/warehouses/{warehouse}",
    operation_id = "put_warehouse",
    tag = "warehouses",
    params(WarehousePath, IfMatch),
    request_body = WarehouseFields,
    responses(
        (status = 200, description = "The warehouse existed, and has the requested data now", body = WarehouseView,
            headers(("ETag" = String, description = "The version of the warehouse, in double quotes"))),
        (status = 201, description = "The warehouse is created", body = WarehouseView,
            headers(("ETag" = String, description = "The version of the warehouse, in double quotes")))
    )
)]
pub async fn put_warehouse(
    DeskForCaller(desk): DeskForCaller,
    Path(WarehousePath { warehouse: id }): Path<WarehousePath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<WarehouseFields>,
) -> Result<(StatusCode, WithETag<Json<WarehouseView>>), DeskProblem> {
    let WarehouseFields { name, region } = body.value;
    let table = &desk.table;
    let stored = table.get_warehouse(&id).await?;
    if_match.check_optional_version(stored.as_ref().map(|stored| stored.version))?;
    if stored.as_ref().is_none_or(|stored| stored.region != region) {
        desk.check_region(&region).await?;
    }
    let (status, written, warehouse) = match stored {
        None => {
            let new = Warehouse { id, name, region, version: 1 };
            (StatusCode::CREATED, table.create_warehouse(&new).await?, new)
        }
        Some(stored) if stored.name == name && stored.region == region => (StatusCode::OK, WriteOutcome::Done, stored),
        Some(stored) => {
            let after = Warehouse { name, region, version: stored.version.saturating_add(1), ..stored.clone() };
            (StatusCode::OK, table.change_warehouse(&stored, &after).await?, after)
        }
    };
    match written {
        WriteOutcome::Done => Ok((status, WithETag(warehouse.version, Json(WarehouseView::from(warehouse))))),
        WriteOutcome::NoAccount | WriteOutcome::Refused(_) => Err(Problem::concurrent_change().into()),
    }
}

/// Get a warehouse
///
/// Returns the name and the region. If you send the `ETag` of the response as `If-Match` with a later change, the
/// change is refused if the warehouse has changed in between.
#[utoipa::path(
    get,
    path = "/warehouses/{warehouse}",
    operation_id = "get_warehouse",
    tag = "warehouses",
    params(WarehousePath),
    responses((status = 200, description = "The warehouse", body = WarehouseView,
        headers(("ETag" = String, description = "The version of the warehouse, in double quotes"))))
)]
pub async fn get_warehouse(
    State(api): State<OrdersApi>,
    Path(WarehousePath { warehouse }): Path<WarehousePath>,
    _: OperatorAccess,
    _: Query<NoParameters>,
) -> Result<WithETag<Json<WarehouseView>>, DeskProblem> {
    let stored = api.desk.table.get_warehouse(&warehouse).await?.ok_or_else(warehouse_not_found)?;
    Ok(WithETag(stored.version, Json(WarehouseView::from(stored))))
}

/// List the employees of a warehouse
///
/// Sorted by id.
#[utoipa::path(
    get,
    path = "/warehouses/{warehouse}/employees",
    operation_id = "list_warehouse_employees",
    tag = "warehouses",
    params(WarehousePath, PageQuery),
    responses((status = 200, description = "A list page of employees", body = ListView<EmployeeView>))
)]
pub async fn list_warehouse_employees(
    State(api): State<OrdersApi>,
    Path(WarehousePath { warehouse }): Path<WarehousePath>,
    _: OperatorAccess,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<EmployeeView>>, DeskProblem> {
    let list = EmployeeList::OfWarehouse(&warehouse);
    let paging = page.paging(|text| OrdersTable::cursor_of_employees(list, text))?;
    let page = api.desk.table.list_employees(list, &paging).await?;
    if page.is_empty() && api.desk.table.get_warehouse(&warehouse).await?.is_none() {
        return Err(warehouse_not_found().into());
    }
    Ok(Json(ListView::from_page(page, EmployeeView::from)?))
}
