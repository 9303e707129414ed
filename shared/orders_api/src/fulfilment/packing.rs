//! `/warehouses/{warehouse}/orders`: the orders that a warehouse picks and ships, as JSON or as packing slips to print.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use billing::Label;
use orders::{OrderStatus, ProductId};
use orders_table::{NamedLine, OrderList, OrderToPack, OrdersTable};
use rest::cursor::ListCursor;
use rest::list::ListView;
use rest::parameters::{PageSize, Path, Query};
use rest::{OperatorAccess, Problem, html_page};
use serde::{Deserialize, Serialize};
use strum::Display;
use utoipa::{IntoParams, ToSchema};

use crate::OrdersApi;
use crate::desk_problem::DeskProblem;
use crate::fulfilment::lines::Quantity;
use crate::fulfilment::order_view::OrderView;
use crate::parameters::WarehousePath;

/// An order with everything that a packer needs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderToPack)]
pub struct OrderToPackView {
    #[serde(flatten)]
    #[schema(inline)]
    order: OrderView,
    /// The products of the order, their names and their quantities.
    lines: Vec<NamedLineView>,
}

/// A product of an order, with its name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NamedLine)]
pub struct NamedLineView {
    /// The merchant's identifier of the product.
    product: ProductId,
    /// The name of the product; null if the product was added to the order a moment ago. A later request returns the name.
    name: Option<Label>,
    /// The number of pieces.
    #[schema(value_type = Quantity)]
    quantity: u32,
}

/// Which orders of a warehouse are listed, and in which order.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WarehouseOrdersQuery {
    /// Only orders in this status. Default: `OPEN`, the orders to pick.
    #[serde(default = "default_packing_status")]
    #[param(value_type = OrderStatus, required = false)]
    status: OrderStatus,
    /// Whether the orders with the oldest or those with the newest payments come first. Default: the oldest.
    #[serde(default)]
    #[param(inline, required = false)]
    sort: OrderSequence,
    /// The `next_cursor` of the previous list page; absent for the first list page.
    #[serde(default)]
    #[param(inline)]
    cursor: ListCursor,
    /// The maximum number of items in the list page.
    #[serde(default)]
    #[param(inline)]
    limit: PageSize,
}

/// The sequence of a list of orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Display, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = Sort)]
pub enum OrderSequence {
    #[default]
    OldestFirst,
    NewestFirst,
}

/// Returns the default of the query parameter `status`.
fn default_packing_status() -> OrderStatus {
    OrderStatus::Open
}

impl From<OrderToPack> for OrderToPackView {
    fn from(OrderToPack { order, lines }: OrderToPack) -> Self {
        let line = |NamedLine { line, name }| NamedLineView { product: line.product, name, quantity: line.quantity };
        Self { order: order.into(), lines: lines.into_iter().map(line).collect() }
    }
}

/// List the orders of a warehouse
///
/// Lists the orders in a status that this warehouse ships, with their products and addresses: the orders to pick, unless
/// `status` names another status. Sorted by the time of the payment. If the header `Accept` prefers `text/html`, returns the
/// packing slips of the list page to print, one page for each order.
#[utoipa::path(
    get,
    path = "/warehouses/{warehouse}/orders",
    operation_id = "list_warehouse_orders",
    tag = "warehouses",
    params(WarehousePath, WarehouseOrdersQuery),
    responses((status = 200, description = "A list page of orders", content(
        (ListView<OrderToPackView> = "application/json"),
        (String = "text/html")
    )))
)]
pub async fn list_warehouse_orders(
    State(api): State<OrdersApi>,
    Path(WarehousePath { warehouse }): Path<WarehousePath>,
    _: OperatorAccess,
    Query(query): Query<WarehouseOrdersQuery>,
    headers: HeaderMap,
) -> Result<Response, DeskProblem> {
    let WarehouseOrdersQuery { status, sort, cursor, limit } = query;
    let paging =
        cursor.paging(limit.0, |text| OrdersTable::cursor_of_orders(OrderList::OfWarehouse(&warehouse), text))?;
    let page =
        api.desk.table.orders_of_warehouse(&warehouse, status, sort == OrderSequence::NewestFirst, &paging).await?;
    if page.is_empty() && api.desk.table.get_warehouse(&warehouse).await?.is_none() {
        return Err(Problem::not_found("there is no such warehouse").into());
    }
    if html_page::prefers_html(&headers) && page.unreadable.is_empty() {
        let next = page.next.map(|cursor| {
            let cursor = ListCursor::encode(cursor.as_str());
            format!("?status={status}&sort={sort}&limit={}&cursor={cursor}", limit.0)
        });
        return Ok(html_page::html_response(api.slip_printer().print_slips(&page.items, next).await?));
    }
    let list = ListView::from_page(page, OrderToPackView::from)?;
    Ok(([(header::VARY, "accept")], Json(list)).into_response())
}
