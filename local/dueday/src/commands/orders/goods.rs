//! Stock, and where it goes.

use billing::AccountId;
use orders::{EmployeeId, Filled, OrderDesk, ProductId, ShippingAddress, WarehouseId, all_days};
use serde::Serialize;
use ulid::Ulid;

use super::AddressArgs;
use crate::context::Context;
use crate::machine::opened::Opened;
use crate::terminal::output::count;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 2] = [Column::text("warehouse"), Column::number("in stock")];

#[derive(Serialize)]
struct StockView {
    product: String,
    name: String,
    total: u64,
    warehouses: Vec<Place>,
}

#[derive(Serialize)]
struct Place {
    warehouse: String,
    quantity: u64,
}

#[derive(Serialize)]
struct FilledView {
    filled: u32,
    still_waiting: u32,
    failed: u32,
}

#[derive(Serialize)]
struct HandedOver {
    orders: u32,
}

/// Exits with 1 if some could not be filled.
fn told(context: &Context, what: &str, done: Filled) -> Result<Exit, Failure> {
    let Filled { filled, still_waiting, failed, .. } = done;
    context.print(&FilledView { filled, still_waiting, failed }, || {
        let waiting = if still_waiting > 0 { format!(", {still_waiting} still waiting") } else { String::new() };
        let failed = if failed > 0 { format!(", {failed} could not be looked at: try again") } else { String::new() };
        format!("{what}; {} filled{waiting}{failed}\n", count(filled.into(), "order"))
    })?;
    Ok(Exit::of(failed == 0))
}

/// That there is such an account: the desk would take any for a new customer.
async fn known(opened: &Opened, account: &AccountId) -> Result<(), Failure> {
    match opened.table.get_account(account).await? {
        Some(_) => Ok(()),
        None => Err(Failure::Refused(format!("there is no account {account}"))),
    }
}

pub async fn stock(context: &Context, desk: &OrderDesk, id: &ProductId) -> Result<Exit, Failure> {
    let Some(product) = desk.table.product(id).await? else {
        return Err(Failure::Refused(format!("there is no product {id}")));
    };
    let stock = desk.table.stock(id, None).await?;
    let warehouses: Vec<Place> =
        stock.iter().map(|s| Place { warehouse: s.warehouse.to_string(), quantity: s.quantity }).collect();
    let name = product.name.as_str().to_owned();
    let view = StockView { product: id.to_string(), name, total: product.total_stock, warehouses };
    context.print(&view, || {
        let rows = view.warehouses.iter().map(|place| vec![place.warehouse.clone(), place.quantity.to_string()]);
        format!("{}\n{} of {} ({}) in all\n", table(&COLUMNS, rows), view.total, view.name, view.product)
    })?;
    Ok(Exit::Done)
}

pub async fn receive(
    context: &Context,
    desk: &OrderDesk,
    product: &ProductId,
    warehouse: &WarehouseId,
    quantity: u64,
    delivery: Option<Ulid>,
) -> Result<Exit, Failure> {
    let delivery = delivery.unwrap_or_else(|| context.clock.ulid());
    let filled = desk.receive(product, warehouse, quantity, delivery).await?;
    told(context, &format!("{quantity} of {product} are in {warehouse}"), filled)
}

pub async fn address(
    context: &Context,
    desk: &OrderDesk,
    opened: &Opened,
    args: &AddressArgs,
) -> Result<Exit, Failure> {
    known(opened, &args.account).await?;
    let address = ShippingAddress {
        name: args.name.clone(),
        street: args.street.clone(),
        postal_code: args.postal_code.clone(),
        city: args.city.clone(),
        country: args.country.clone(),
        region: args.region.clone(),
    };
    let (_, filled) = desk.ship_to(&args.account, address).await?;
    told(context, &format!("{} has its address", args.account), filled)
}

pub async fn hand_over(
    context: &Context,
    desk: &OrderDesk,
    opened: &Opened,
    account: &AccountId,
    representative: &EmployeeId,
) -> Result<Exit, Failure> {
    known(opened, account).await?;
    let orders = desk.hand_over(account, representative, all_days()).await?;
    context.print(&HandedOver { orders }, || {
        format!("{representative} looks after {account}, and is credited with {}\n", count(orders.into(), "order"))
    })?;
    Ok(Exit::Done)
}
