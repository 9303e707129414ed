//! Shows the stock of a product, and adds deliveries to it.

use orders::{ProductId, WarehouseId};
use orders_desk::OrderDesk;
use serde::Serialize;
use ulid::Ulid;

use crate::commands::orders::fulfilment::fill_waiting_orders::fill_orders_after_change;
use crate::context::CommandContext;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of a product's stock.
const COLUMNS: [TableColumn; 2] = [TableColumn::unwrapped("warehouse"), TableColumn::number("in stock")];

/// The stock of a product, as printed with `--json`.
#[derive(Serialize)]
struct StockView {
    product: String,
    name: String,
    total: u64,
    warehouses: Vec<WarehouseStock>,
}

/// The stock of a product in one warehouse.
#[derive(Serialize)]
struct WarehouseStock {
    warehouse: String,
    quantity: u64,
}

/// Shows the stock of the product `id` in each warehouse.
pub async fn show_stock(context: &CommandContext, desk: &OrderDesk, id: &ProductId) -> Result<Exit, Failure> {
    let Some(product) = desk.table.get_product(id).await? else {
        return Err(Failure::Refused(format!("there is no product {id}")));
    };
    let stock = desk.table.get_stock(id, None).await?;
    let warehouses: Vec<WarehouseStock> =
        stock.iter().map(|s| WarehouseStock { warehouse: s.warehouse.to_string(), quantity: s.quantity }).collect();
    let name = product.name.as_str().to_owned();
    let view = StockView { product: id.to_string(), name, total: product.total_stock, warehouses };
    context.print(&view, || {
        let rows = view.warehouses.iter().map(|stock| vec![stock.warehouse.clone(), stock.quantity.to_string()]);
        format!("{}\ntotal stock of {} ({}): {}\n", format_table(&COLUMNS, rows), view.name, view.product, view.total)
    })?;
    Ok(Exit::Done)
}

/// Adds a delivery of a product to the stock of a warehouse, and fills waiting orders. A repeated call with the same
/// `delivery` adds no stock.
pub async fn receive_delivery(
    context: &CommandContext,
    desk: &OrderDesk,
    product: &ProductId,
    warehouse: &WarehouseId,
    quantity: u64,
    delivery: Option<Ulid>,
) -> Result<Exit, Failure> {
    let delivery = delivery.unwrap_or_else(|| context.clock.ulid());
    desk.receive_stock(product, warehouse, quantity, delivery).await?;
    fill_orders_after_change(context, desk, &format!("{quantity} x {product} added to the stock of {warehouse}")).await
}
