//! Lists the orders that a warehouse picks, as a table, as CSV or as packing slips to print, and ships orders.

use std::fs::File;
use std::path::{Path, PathBuf};

use billing::Label;
use clap::Args;
use orders::{OrderId, OrderStatus, OrderStep, Parcel, ShippingAddress, WarehouseId};
use orders_api::SlipPrinter;
use orders_desk::OrderDesk;
use orders_table::{NamedLine, OrderToPack};
use serde::Serialize;
use store::Paging;

use crate::commands::orders::csv_file::{self, CsvLine};
use crate::commands::orders::fulfilment::list;
use crate::commands::orders::fulfilment::list::PrintedOrder;
use crate::commands::orders::parse_order_status;
use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::terminal::csv_writer::{CsvCell, CsvWriter};
use crate::terminal::output::{self, format_count};
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The text after the help of `dueday orders pick-list`.
pub const AFTER_HELP: &str = "\
The orders of a warehouse that are ready to be picked, with their products and addresses.

Examples:
  dueday orders pick-list ams
  dueday orders pick-list ams --slips slips.html    (open the file in a browser, and print it)
  dueday orders pick-list ams --csv > to-pick.csv";

/// The text after the help of `dueday orders ship`.
pub const SHIP_COMMAND_AFTER_HELP: &str = "\
The columns of a file: order,carrier,tracking_number.

Example:
  order,carrier,tracking_number
  2027-01-31.01JZXCVBNM0123456789ABCDEF,Post,RR123456785NL";

/// The columns of the table of orders to pick.
const COLUMNS: [TableColumn; 3] =
    [TableColumn::unwrapped("order"), TableColumn::text("products"), TableColumn::text("ship to")];
/// The columns of the list of orders to pick as CSV.
const CSV_COLUMNS: [&str; 12] = [
    "order",
    "placed_at",
    "name",
    "street",
    "line2",
    "postal_code",
    "city",
    "state",
    "country",
    "phone",
    "product",
    "quantity",
];
/// The columns of the file of `dueday orders ship --file`.
const FILE_COLUMNS: [&str; 3] = ["order", "carrier", "tracking_number"];

/// Which orders of a warehouse are listed, and how.
#[derive(Debug, Args)]
pub struct PickListArgs {
    pub warehouse: WarehouseId,
    /// The status of the orders
    #[arg(long, value_name = "STATUS", value_parser = parse_order_status, default_value = "OPEN")]
    pub status: OrderStatus,
    /// The newest orders first, instead of the oldest
    #[arg(long)]
    pub newest_first: bool,
    /// The largest number of orders to list, from 1 to 10000 [default: all orders]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = |text: &str| crate::commands::value_parsers::parse_number_in_range::<usize>(text, 1..=10_000))]
    pub limit: Option<usize>,
    /// Print CSV: one line for each product of each order
    #[arg(long, conflicts_with = "slips")]
    pub csv: bool,
    /// Write packing slips to this file, one page for each order
    #[arg(long, value_name = "FILE")]
    pub slips: Option<PathBuf>,
}

/// The orders that are shipped.
#[derive(Debug, Args)]
pub struct ShipArgs {
    #[arg(value_name = "ORDER", required_unless_present = "file", conflicts_with = "file")]
    pub orders: Vec<OrderId>,
    /// The company that carries the parcels
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub carrier: Option<Label>,
    /// The number by which the carrier finds the parcel of a single order
    #[arg(long, value_name = "NUMBER", conflicts_with = "file")]
    pub tracking_number: Option<Label>,
    /// Ship the orders of this CSV file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// An order to pick, as printed with `--json`.
#[derive(Serialize)]
struct OrderToPackView {
    #[serde(flatten)]
    order: PrintedOrder,
    lines: Vec<LineToPackView>,
}

/// A product of an order, with its name and its quantity.
#[derive(Serialize)]
struct LineToPackView {
    product: String,
    name: Option<String>,
    quantity: u32,
}

impl From<&OrderToPack> for OrderToPackView {
    fn from(OrderToPack { order, lines }: &OrderToPack) -> Self {
        let line = |NamedLine { line, name }: &NamedLine| LineToPackView {
            product: line.product.to_string(),
            name: name.as_ref().map(|name| name.as_str().to_owned()),
            quantity: line.quantity,
        };
        Self { order: order.into(), lines: lines.iter().map(line).collect() }
    }
}

/// Lists the orders to pick.
pub async fn print_pick_list(
    context: &CommandContext,
    desk: &OrderDesk,
    open_table: &OpenTable,
    args: &PickListArgs,
) -> Result<Exit, Failure> {
    let paging = Paging { after: None, limit: args.limit };
    let page = desk.table.orders_of_warehouse(&args.warehouse, args.status, args.newest_first, &paging).await?;
    let orders = page.into_items()?;
    if orders.is_empty() && desk.table.get_warehouse(&args.warehouse).await?.is_none() {
        return Err(Failure::Refused(format!("there is no warehouse {}", args.warehouse)));
    }
    if args.csv {
        return print_pick_list_as_csv(&orders);
    }
    let count = format_count(orders.len() as u64, "order");
    if let Some(path) = &args.slips {
        let failed = |error: std::io::Error| Failure::File { path: path.clone(), reason: error.to_string() };
        let (orders_table, payments) = (&desk.table, &open_table.table);
        let printer = SlipPrinter { orders_table, payments, merchant: &context.config.merchant.name };
        std::fs::write(path, printer.print_slips(&orders, None).await?).map_err(failed)?;
        context.print(&orders.iter().map(OrderToPackView::from).collect::<Vec<_>>(), || {
            format!("the packing slips of {count} are in {}\n", path.display())
        })?;
        return Ok(Exit::Done);
    }
    context.print(&orders.iter().map(OrderToPackView::from).collect::<Vec<_>>(), || match orders.len() {
        0 => format!("no order of {} is {}\n", args.warehouse, args.status),
        _ => format!("{}\n{count}\n", format_table(&COLUMNS, orders.iter().map(pick_list_row))),
    })?;
    Ok(Exit::Done)
}

/// Returns the row of an order, with the quantity and the name of each product.
fn pick_list_row(OrderToPack { order, lines }: &OrderToPack) -> Vec<String> {
    let product = |NamedLine { line, name }: &NamedLine| {
        let name = name.as_ref().map_or_else(|| line.product.to_string(), |name| name.as_str().to_owned());
        format!("{} x {name}", line.quantity)
    };
    let products: Vec<String> = lines.iter().map(product).collect();
    let address = order.address.as_ref().map(list::address_line).unwrap_or_default();
    vec![order.id.to_string(), products.join(", "), address]
}

/// Prints the orders as CSV: one line for each product of each order.
fn print_pick_list_as_csv(orders: &[OrderToPack]) -> Result<Exit, Failure> {
    let mut file = CsvWriter::new(Vec::new());
    file.write_row(CSV_COLUMNS.map(CsvCell::from)).map_err(Failure::Output)?;
    for OrderToPack { order, lines } in orders {
        let address = order.address.as_ref();
        let text = |part: fn(&ShippingAddress) -> &str| CsvCell::from(address.map_or("", part));
        for NamedLine { line, .. } in lines {
            let cells = [
                order.id.to_string().into(),
                order.placed_at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true).into(),
                text(|address| address.name.as_str()),
                text(|address| address.street.as_str()),
                text(|address| address.line2.as_ref().map_or("", |line2| line2.as_str())),
                text(|address| address.postal_code.as_str()),
                text(|address| address.city.as_str()),
                text(|address| address.state.as_ref().map_or("", |state| state.as_str())),
                text(|address| address.country.as_str()),
                text(|address| address.phone.as_ref().map_or("", |phone| phone.as_str())),
                line.product.as_str().into(),
                CsvCell::Number(line.quantity.to_string()),
            ];
            file.write_row(cells).map_err(Failure::Output)?;
        }
    }
    file.flush().map_err(Failure::Output)?;
    output::print_text(&String::from_utf8_lossy(file.output()))?;
    Ok(Exit::Done)
}

/// Marks orders as shipped, with their parcels.
pub async fn ship_orders(context: &CommandContext, desk: &OrderDesk, args: &ShipArgs) -> Result<Exit, Failure> {
    if args.tracking_number.is_some() && args.orders.len() > 1 {
        let reason = "--tracking-number is the number of one parcel: give one order, or a file with --file";
        return Err(Failure::Refused(reason.to_owned()));
    }
    let parcel = Parcel { carrier: args.carrier.clone(), tracking_number: args.tracking_number.clone() };
    let parcels = match &args.file {
        Some(path) => read_parcels(path)?,
        None => args.orders.iter().map(|order| (*order, parcel.clone())).collect(),
    };
    let steps = parcels.into_iter().map(|(order, parcel)| (order, OrderStep { parcel, ..OrderStatus::Shipped.into() }));
    list::change_status_of_each_order(context, desk, steps).await
}

/// Reads the orders and their parcels from the CSV file at `path`.
fn read_parcels(path: &Path) -> Result<Vec<(OrderId, Parcel)>, Failure> {
    let invalid_file = |reason: String| Failure::File { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| invalid_file(error.to_string()))?;
    let read = |line: &CsvLine<'_>| {
        let parcel =
            Parcel { carrier: line.optional_cell("carrier")?, tracking_number: line.optional_cell("tracking_number")? };
        Ok((line.required_cell("order")?, parcel))
    };
    csv_file::read_csv_lines(file, &FILE_COLUMNS, read).map_err(invalid_file)
}
