//! Manages stock and representatives.

use billing::AccountId;
use orders::{EmployeeId, ProductId, WarehouseId};
use orders_desk::OrderDesk;
use serde::Serialize;
use ulid::Ulid;

use super::fill_waiting_orders::FillReport;
use crate::context::Context;
use crate::machine::open_table::OpenTable;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

/// The columns of the table of a product's stock.
const COLUMNS: [Column; 2] = [Column::whole("warehouse"), Column::number("in stock")];

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

/// The output of `dueday orders hand-over` with `--json`.
#[derive(Serialize)]
struct HandOverReport {
    /// The number of customers whom the new representative was given.
    customers: usize,
}

/// Fills waiting orders after a change of stock or of an address, and prints the text `change` with the number of
/// filled orders. Returns [`Exit::Attention`] if an order or a fill task failed with an error.
pub async fn fill_orders_after_change(context: &Context, desk: &OrderDesk, change: &str) -> Result<Exit, Failure> {
    let report = FillReport::fill_waiting_orders(context, desk).await;
    context.print(&report, || format!("{change}; {}\n", report.text()))?;
    Ok(report.exit())
}

/// Checks that `account` exists, because the order desk would create a customer for any account id.
pub async fn require_account(open_table: &OpenTable, account: &AccountId) -> Result<(), Failure> {
    match open_table.table.get_account(account).await? {
        Some(_) => Ok(()),
        None => Err(Failure::Refused(format!("there is no account {account}"))),
    }
}

/// Shows the stock of the product `id` in each warehouse.
pub async fn show_stock(context: &Context, desk: &OrderDesk, id: &ProductId) -> Result<Exit, Failure> {
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
        format!("{}\ntotal stock of {} ({}): {}\n", table(&COLUMNS, rows), view.name, view.product, view.total)
    })?;
    Ok(Exit::Done)
}

/// Adds a delivery of a product to the stock of a warehouse, and fills waiting orders. A repeated call with the same
/// `delivery` adds no stock.
pub async fn receive_delivery(
    context: &Context,
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

/// Gives the customers `accounts` to `representative`.
pub async fn hand_over(
    context: &Context,
    desk: &OrderDesk,
    open_table: &OpenTable,
    accounts: &[AccountId],
    representative: &EmployeeId,
) -> Result<Exit, Failure> {
    for account in accounts {
        require_account(open_table, account).await?;
    }
    for account in accounts {
        desk.hand_over(account, representative).await?;
    }
    let customers = accounts.len();
    context.print(&HandOverReport { customers }, || {
        let names: Vec<&str> = accounts.iter().map(AccountId::as_str).collect();
        format!("{representative} now represents {}\n", names.join(", "))
    })?;
    Ok(Exit::Done)
}
