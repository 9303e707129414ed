//! `/warehouses/{warehouse}/orders`: the orders that a warehouse picks and ships, as JSON or as packing slips to print.

use ::orders::{
    FollowUpReason, NamedLine, OrderList, OrderStatus, OrderToPack, OrdersTable, ProductId, ShippingAddress,
};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use billing::Label;
use minijinja::{Value, context};
use qrcode::QrCode;
use qrcode::render::svg;
use rest::cursor::ListCursor;
use rest::list::ListView;
use rest::parameters::{Limit, Path, Query};
use rest::{Operator, Problem, html_page};
use serde::{Deserialize, Serialize};
use strum::Display;
use utoipa::{IntoParams, ToSchema};

use super::OrdersApi;
use super::desk_problem::DeskProblem;
use super::order_view::OrderView;
use super::parameters::WarehousePath;
use super::products::Quantity;

/// The HTML template of the packing slips. Each order is printed on a page of its own.
const SLIPS_TEMPLATE: &str = include_str!("packing_slips.html");
/// The width and height of the QR code with the order number, in CSS pixels. This is 3 cm on paper.
const CODE_PIXELS: u32 = 113;

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
    #[serde(default = "open")]
    #[param(value_type = OrderStatus, required = false)]
    status: OrderStatus,
    /// Whether the orders with the oldest or those with the newest payments come first. Default: the oldest.
    #[serde(default)]
    #[param(inline, required = false)]
    sort: Sort,
    /// The `next_cursor` of the previous list page; absent for the first list page.
    #[serde(default)]
    #[param(inline)]
    cursor: ListCursor,
    /// The maximum number of items in the list page.
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
}

/// The sequence of a list of orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Display, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Sort {
    #[default]
    OldestFirst,
    NewestFirst,
}

/// Returns the default of the query parameter `status`.
fn open() -> OrderStatus {
    OrderStatus::Open
}

impl From<OrderToPack> for OrderToPackView {
    fn from(OrderToPack { order, lines }: OrderToPack) -> Self {
        let line = |NamedLine { line, name }| NamedLineView { product: line.product, name, quantity: line.quantity };
        Self { order: order.into(), lines: lines.into_iter().map(line).collect() }
    }
}

/// Returns the packing slips of `orders` as one web page, which prints each order on a page of its own. Each printed page shows
/// the order number as a QR code, the address, and the products.
pub fn packing_slips(orders: &[OrderToPack]) -> String {
    slips_page(orders, None)
}

/// Returns the web page with the packing slips of `orders`. `next` is the URL of the next list page, to which the web
/// page has a link. The link is not printed.
fn slips_page(orders: &[OrderToPack], next: Option<String>) -> String {
    let slips: Vec<Value> = orders.iter().map(slip_values).collect();
    html_page::render("packing_slips.html", SLIPS_TEMPLATE, context! { slips, next })
}

/// Returns the values of an order for the template of the packing slips.
fn slip_values(OrderToPack { order, lines }: &OrderToPack) -> Value {
    let lines: Vec<Value> = lines
        .iter()
        .map(|NamedLine { line, name }| {
            let name = name.as_ref().map_or_else(|| line.product.as_str(), |name| name.as_str());
            context! { quantity => line.quantity, product => line.product.as_str(), name }
        })
        .collect();
    let address = order.address.as_ref().map(|ShippingAddress { name, street, postal_code, city, country, .. }| {
        let [name, street, city] = [name, street, city].map(|label| label.as_str());
        context! { name, street, postal_code => postal_code.as_str(), city, country => country.as_str() }
    });
    let number = order.id.to_string();
    let follows = order.follow_up.map(|follow_up| follow_up.follows.to_string());
    let reason = order.follow_up.map(|follow_up| match follow_up.reason {
        FollowUpReason::Remainder => "Remainder",
        FollowUpReason::Replacement => "Replacement",
    });
    let paid_on = order.placed_at.date_naive().to_string();
    context! { code => Value::from_safe_string(qr_code_svg(&number)), number, paid_on, follows, reason, address, lines }
}

/// Returns `text` as a QR code in SVG.
fn qr_code_svg(text: &str) -> String {
    // A QR code can contain 2,900 bytes, and an order number has at most 40.
    let code = QrCode::new(text).expect("an order number is short enough");
    let svg = code.render::<svg::Color<'_>>().min_dimensions(CODE_PIXELS, CODE_PIXELS).build();
    // Remove the XML declaration before the SVG element: it is not allowed within HTML.
    svg.split_once("?>").map_or_else(|| svg.clone(), |(_, svg)| svg.to_owned())
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
pub async fn list_orders(
    State(api): State<OrdersApi>,
    Path(WarehousePath { warehouse }): Path<WarehousePath>,
    _: Operator,
    Query(query): Query<WarehouseOrdersQuery>,
    headers: HeaderMap,
) -> Result<Response, DeskProblem> {
    let WarehouseOrdersQuery { status, sort, cursor, limit } = query;
    let paging =
        cursor.paging(limit.0, |text| OrdersTable::cursor_of_orders(OrderList::OfWarehouse(&warehouse), text))?;
    let page = api.desk.table.orders_of_warehouse(&warehouse, status, sort == Sort::NewestFirst, &paging).await?;
    if page.is_empty() && api.desk.table.get_warehouse(&warehouse).await?.is_none() {
        return Err(Problem::not_found("there is no such warehouse").into());
    }
    if html_page::prefers_html(&headers) && page.unreadable.is_empty() {
        let next = page.next.map(|cursor| {
            let cursor = ListCursor::encode(cursor.as_str());
            format!("?status={status}&sort={sort}&limit={}&cursor={cursor}", limit.0)
        });
        return Ok(html_page::response(slips_page(&page.items, next)));
    }
    let list = ListView::from_page(page, OrderToPackView::from)?;
    Ok(([(header::VARY, "accept")], Json(list)).into_response())
}
