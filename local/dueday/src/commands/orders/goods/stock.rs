//! Counts, writes off and transfers stock, and lists the movements of a product or of an order.

use billing::Label;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use clap::Args;
use orders::{
    Movement, MovementKind, MovementRequest, OrderId, OrderMovement, OrderMovementLine, ProductId, StockEffect,
    WarehouseId,
};
use orders_desk::OrderDesk;
use serde::Serialize;
use store::Paging;
use ulid::Ulid;

use crate::commands::orders::fulfilment::fill_waiting_orders::fill_orders_after_change;
use crate::commands::value_parsers::parse_number_in_range;
use crate::context::CommandContext;
use crate::terminal::local_time::format_minutes;
use crate::terminal::output::format_count;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The text after the help of `dueday orders count`.
pub const COUNT_COMMAND_AFTER_HELP: &str = "\
Pieces that are reserved for orders are not part of the stock. So pick the open orders first \
(`dueday orders pick-list`), mark them as picked, and count the pieces that are left.

Example:
  dueday orders count beans ams 480 --reason 'yearly count'";

/// The columns of the table of a product's movements.
const COLUMNS: [TableColumn; 7] = [
    TableColumn::unwrapped("recorded"),
    TableColumn::unwrapped("kind"),
    TableColumn::unwrapped("warehouse"),
    TableColumn::unwrapped("to"),
    TableColumn::number("change"),
    TableColumn::text("reason"),
    TableColumn::unwrapped("movement"),
];

/// The columns of the table of an order's movements.
const ORDER_COLUMNS: [TableColumn; 5] = [
    TableColumn::unwrapped("recorded"),
    TableColumn::unwrapped("effect"),
    TableColumn::unwrapped("warehouse"),
    TableColumn::unwrapped("product"),
    TableColumn::number("change"),
];

/// The largest number of movements in a list.
const MAX_LISTED: usize = 1_000;

/// The arguments of `dueday orders count`.
#[derive(Debug, Args)]
pub struct CountStockArgs {
    product: ProductId,
    warehouse: WarehouseId,
    /// The number of pieces that were found
    #[arg(value_name = "N", value_parser = |text: &str| parse_number_in_range::<u64>(text, 0..=1_000_000_000))]
    found: u64,
    /// Why the stock was counted, or why it differs
    #[arg(long)]
    reason: Label,
    #[command(flatten)]
    movement: MovementId,
}

/// The arguments of `dueday orders write-off`.
#[derive(Debug, Args)]
pub struct WriteOffArgs {
    product: ProductId,
    warehouse: WarehouseId,
    #[arg(value_name = "N", value_parser = |text: &str| parse_number_in_range::<u64>(text, 1..=1_000_000_000))]
    quantity: u64,
    /// Why the pieces cannot be sold
    #[arg(long)]
    reason: Label,
    #[command(flatten)]
    movement: MovementId,
}

/// The arguments of `dueday orders transfer`.
#[derive(Debug, Args)]
pub struct TransferArgs {
    product: ProductId,
    /// The warehouse in which the pieces are
    #[arg(value_name = "FROM")]
    from: WarehouseId,
    /// The warehouse that gets the pieces
    #[arg(value_name = "TO")]
    to: WarehouseId,
    #[arg(value_name = "N", value_parser = |text: &str| parse_number_in_range::<u64>(text, 1..=1_000_000_000))]
    quantity: u64,
    /// Why the pieces are moved
    #[arg(long)]
    reason: Option<Label>,
    #[command(flatten)]
    movement: MovementId,
}

/// The id of a movement.
#[derive(Debug, Args)]
pub struct MovementId {
    /// An id for this movement, a ULID; a repeated command with the same id changes nothing
    #[arg(long, value_name = "ULID")]
    movement: Option<Ulid>,
}

/// The arguments of `dueday orders movements`.
#[derive(Debug, Args)]
pub struct MovementsArgs {
    #[arg(required_unless_present = "order")]
    product: Option<ProductId>,
    /// List the movements of the products of this order instead
    #[arg(long, conflicts_with = "product")]
    order: Option<OrderId>,
    /// The largest number of movements to list
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = |text: &str| parse_number_in_range::<usize>(text, 1..=MAX_LISTED))]
    limit: usize,
}

/// A movement (a requested change of a product's stock), as printed with `--json`.
#[derive(Serialize)]
struct MovementView {
    movement: Ulid,
    kind: MovementKind,
    product: String,
    warehouse: String,
    to_warehouse: Option<String>,
    quantity: u64,
    stock_change: i64,
    reason: Option<String>,
    recorded_at: DateTime<Utc>,
}

/// The change of one product's stock by a change of an order, as printed with `--json`.
#[derive(Serialize)]
struct OrderMovementView {
    /// The version that the order had after the change that caused this stock movement.
    version: u64,
    effect: StockEffect,
    warehouse: String,
    product: String,
    stock_change: i64,
    recorded_at: DateTime<Utc>,
}

impl OrderMovementView {
    /// Returns the movement of each product in `movement`.
    fn of_lines(movement: &OrderMovement) -> Vec<Self> {
        let view = |line: &OrderMovementLine| Self {
            version: movement.version,
            effect: movement.effect,
            warehouse: movement.warehouse.to_string(),
            product: line.product.to_string(),
            stock_change: line.stock_change,
            recorded_at: movement.at,
        };
        movement.lines.iter().map(view).collect()
    }
}

impl From<&Movement> for MovementView {
    fn from(movement: &Movement) -> Self {
        Self {
            movement: movement.id,
            kind: movement.kind,
            product: movement.product.to_string(),
            warehouse: movement.warehouse.to_string(),
            to_warehouse: movement.to.as_ref().map(ToString::to_string),
            quantity: movement.quantity,
            stock_change: movement.stock_change,
            reason: movement.reason.as_ref().map(|reason| reason.as_str().to_owned()),
            recorded_at: movement.at,
        }
    }
}

/// Makes the movement that `request` describes, and returns the stored movement.
async fn move_stock(
    context: &CommandContext,
    desk: &OrderDesk,
    product: &ProductId,
    id: &MovementId,
    request: &MovementRequest,
) -> Result<Movement, Failure> {
    let id = id.movement.unwrap_or_else(|| context.clock.ulid());
    Ok(desk.move_stock(product, id, request).await?)
}

/// Sets the stock of a product in a warehouse to the counted number, and fills waiting orders.
pub async fn count_stock(context: &CommandContext, desk: &OrderDesk, args: &CountStockArgs) -> Result<Exit, Failure> {
    let CountStockArgs { product, warehouse, found, reason, movement } = args;
    let request = MovementRequest::Count { warehouse: warehouse.clone(), found: *found, reason: reason.clone() };
    let moved = move_stock(context, desk, product, movement, &request).await?;
    let change = format!("the stock of {product} in {warehouse} is {found} ({:+})", moved.stock_change);
    fill_orders_after_change(context, desk, &change).await
}

/// Subtracts lost or broken pieces of a product from the stock of a warehouse.
pub async fn write_off_stock(context: &CommandContext, desk: &OrderDesk, args: &WriteOffArgs) -> Result<Exit, Failure> {
    let WriteOffArgs { product, warehouse, quantity, reason, movement } = args;
    let request =
        MovementRequest::WriteOff { warehouse: warehouse.clone(), quantity: *quantity, reason: reason.clone() };
    let moved = move_stock(context, desk, product, movement, &request).await?;
    context.print(&MovementView::from(&moved), || {
        format!("{quantity} x {product} subtracted from the stock of {warehouse}\n")
    })?;
    Ok(Exit::Done)
}

/// Moves pieces of a product from one warehouse to another, and fills waiting orders.
pub async fn transfer_stock(context: &CommandContext, desk: &OrderDesk, args: &TransferArgs) -> Result<Exit, Failure> {
    let TransferArgs { product, from, to, quantity, reason, movement } = args;
    let request =
        MovementRequest::Transfer { from: from.clone(), to: to.clone(), quantity: *quantity, reason: reason.clone() };
    move_stock(context, desk, product, movement, &request).await?;
    fill_orders_after_change(
        context,
        desk,
        &format!("{quantity} x {product} moved from the stock of {from} to the stock of {to}"),
    )
    .await
}

/// Lists the movements of a product or of an order.
pub async fn list_stock_movements(
    context: &CommandContext,
    desk: &OrderDesk,
    zone: Tz,
    args: &MovementsArgs,
) -> Result<Exit, Failure> {
    let paging = Paging { after: None, limit: Some(args.limit) };
    match (&args.product, args.order) {
        (Some(product), _) => list_movements_of_product(context, zone, desk, product, &paging).await,
        (None, Some(order)) => list_movements_of_order(context, zone, desk, order, &paging).await,
        // This case does not occur, because clap requires a product or an order.
        (None, None) => Ok(Exit::Done),
    }
}

/// Lists the movements of an order's products, the newest first.
async fn list_movements_of_order(
    context: &CommandContext,
    zone: Tz,
    desk: &OrderDesk,
    order: OrderId,
    paging: &Paging,
) -> Result<Exit, Failure> {
    if desk.table.get_order(order).await?.is_none() {
        return Err(Failure::Refused(format!("there is no order {order}")));
    }
    let movements = desk.table.movements_of_order(order, paging).await?.into_items()?;
    let views: Vec<OrderMovementView> = movements.iter().flat_map(OrderMovementView::of_lines).collect();
    context.print(&views, || {
        let rows = views.iter().map(|view| {
            vec![
                format_minutes(view.recorded_at, zone),
                view.effect.to_string(),
                view.warehouse.clone(),
                view.product.clone(),
                format!("{:+}", view.stock_change),
            ]
        });
        // A movement of an order has a row for each product.
        match views.len() {
            0 => "no movements were recorded\n".to_owned(),
            some => format!("{}\n{}\n", format_table(&ORDER_COLUMNS, rows), format_count(some as u64, "movement")),
        }
    })?;
    Ok(Exit::Done)
}

/// Lists the movements of a product, the newest first.
async fn list_movements_of_product(
    context: &CommandContext,
    zone: Tz,
    desk: &OrderDesk,
    product: &ProductId,
    paging: &Paging,
) -> Result<Exit, Failure> {
    if desk.table.get_product(product).await?.is_none() {
        return Err(Failure::Refused(format!("there is no product {product}")));
    }
    let page = desk.table.movements_of_product(product, paging).await?;
    let views: Vec<MovementView> = page.into_items()?.iter().map(MovementView::from).collect();
    context.print(&views, || {
        let rows = views.iter().map(|view| {
            vec![
                format_minutes(view.recorded_at, zone),
                view.kind.to_string(),
                view.warehouse.clone(),
                view.to_warehouse.clone().unwrap_or_default(),
                format!("{:+}", view.stock_change),
                view.reason.clone().unwrap_or_default(),
                view.movement.to_string(),
            ]
        });
        match views.len() {
            0 => "no movements were recorded\n".to_owned(),
            some => format!("{}\n{}\n", format_table(&COLUMNS, rows), format_count(some as u64, "movement")),
        }
    })?;
    Ok(Exit::Done)
}
