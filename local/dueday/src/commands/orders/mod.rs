//! `dueday orders`: manages the order desk.

mod audit;
mod csv_file;
mod fulfilment;
pub mod goods;
pub mod people;
mod shards;

use std::path::PathBuf;

use billing::{AccountId, Currency};
use chrono::NaiveDate;
use clap::{Args, Subcommand};
use orders::{EmployeeId, OrderId, OrderLine, OrderStatus, OrderStep, PlaceId, ProductId, Quarter, WarehouseId};
use orders_desk::OrderDesk;
use orders_table::BucketCount;
use store::TableError;
use ulid::Ulid;

use fulfilment::{address, backfill, follow_ups, list, packing};
use goods::{deliveries, import, stock};
use people::{customers, employees, places};

use super::list_output::LimitArgs;
use super::value_parsers::{parse_date, parse_number_in_range};
use crate::context::CommandContext;
use crate::machine::data_folder::{FolderRequirement, unplaced_orders_file};
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::output::format_count;
use crate::{Exit, Failure};

/// The arguments of `dueday orders`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each paid month creates one order, if its SKU has products. `dueday orders places` defines the regions and jobs, `dueday \
orders import` the products of SKUs and the stock of warehouses, and `dueday orders people` the employees. An order waits \
(BACKORDERED) until it has an address and one warehouse has all its products in stock.

Examples:
  dueday orders places places.csv
  dueday orders import stock.csv
  dueday orders people people.csv
  dueday orders address acme --name 'Acme Ltd' --street '1 High Street' \\
      --city Leeds --postal-code LS1 --country gb --region eu
  dueday orders list --status OPEN
  dueday orders ship 2027-01-31.01JZXCVBNM0123456789ABCDEF

On one machine, the command exits with 1 while the order of a paid month could not be placed.")]
pub struct OrdersArgs {
    /// The name of the order desk's table on AWS; has no effect without --table
    #[arg(long, value_name = "NAME", default_value = "dueday-orders", env = "DUEDAY_ORDERS_TABLE", global = true)]
    #[arg(help_heading = "Settings", hide_short_help = true)]
    orders_table: String,
    /// The number of buckets of the index over all orders, for a new table on AWS
    #[arg(long, value_name = "N", default_value_t = 4, env = "DUEDAY_ORDER_BUCKETS", global = true)]
    #[arg(help_heading = "Settings", hide_short_help = true)]
    #[arg(value_parser = |text: &str| parse_number_in_range::<u32>(text, 1..=1_000))]
    order_buckets: u32,
    #[command(subcommand)]
    action: OrdersAction,
}

#[derive(Debug, Subcommand)]
enum OrdersAction {
    /// List orders, oldest first
    List(ListOrdersArgs),
    /// Show an order with its lines
    Show {
        #[arg(value_name = "ORDER")]
        order: OrderId,
    },
    /// List the orders that a warehouse picks, or write packing slips
    #[command(after_help = packing::AFTER_HELP)]
    PickList(packing::PickListArgs),
    /// Mark orders as picked
    Pick(OrderIds),
    /// Mark orders as shipped, with the tracking numbers of their parcels
    #[command(after_help = packing::SHIP_COMMAND_AFTER_HELP)]
    Ship(packing::ShipArgs),
    /// Mark orders as delivered
    Deliver(OrderIds),
    /// Mark orders as returned, and restore the stock
    Return {
        #[command(flatten)]
        orders: OrderIds,
        /// The products cannot be sold again: do not add them to the stock
        #[arg(long)]
        unsellable: bool,
    },
    /// Cancel orders that are not shipped, and restore the stock
    Cancel {
        #[command(flatten)]
        orders: OrderIds,
        #[command(flatten)]
        confirmation: ConfirmationArgs,
    },
    /// Change the products of an order that is not picked yet
    Lines {
        order: OrderId,
        /// A product and its quantity, such as beans=2. The order gets exactly the given products
        #[arg(value_name = "PRODUCT=N", required = true, value_parser = parse_order_line)]
        lines: Vec<OrderLine>,
    },
    /// Split an order that is not picked yet into two
    ///
    /// The order keeps the products that can be shipped now, and a new order gets the other products.
    #[command(after_help = follow_ups::SPLIT_COMMAND_AFTER_HELP)]
    Split(follow_ups::SplitArgs),
    /// Send products of a shipped order again, without a payment
    #[command(after_help = follow_ups::REPLACE_COMMAND_AFTER_HELP)]
    Replace(follow_ups::ReplaceArgs),
    /// Show or set a customer's shipping address
    ///
    /// Stock is reserved for the orders that were waiting for the address. With --order, corrects only the address of this
    /// order.
    #[command(after_help = address::AFTER_HELP)]
    Address(address::AddressArgs),
    /// Give customers to another representative
    ///
    /// Later orders of the customers are credited to this representative.
    HandOver {
        #[arg(value_name = "ACCOUNT", required = true)]
        accounts: Vec<AccountId>,
        representative: EmployeeId,
    },
    /// Show a product's stock by warehouse
    Stock { product: ProductId },
    /// Add a delivery of a product to the stock of a warehouse
    ///
    /// Stock is reserved for the orders that were waiting for the product.
    Receive {
        product: ProductId,
        warehouse: WarehouseId,
        #[arg(value_name = "N", value_parser = |text: &str| parse_number_in_range::<u64>(text, 1..=1_000_000_000))]
        quantity: u64,
        /// An id for this delivery, a ULID; a repeated command with the same id adds no stock
        #[arg(long, value_name = "ULID")]
        delivery: Option<Ulid>,
    },
    /// Set the stock of a product in a warehouse to the counted number
    #[command(after_help = stock::COUNT_COMMAND_AFTER_HELP)]
    Count(stock::CountStockArgs),
    /// Subtract lost or broken pieces of a product from the stock
    WriteOff(stock::WriteOffArgs),
    /// Move pieces of a product to the stock of another warehouse
    Transfer(stock::TransferArgs),
    /// List the changes of the stock, newest first
    ///
    /// With a product, lists the requested changes of its stock; with an order, the stock changes that it caused.
    Movements(stock::MovementsArgs),
    /// Check the stock, the totals and the orders
    ///
    /// Compares the stock with its movements, the totals with the orders, and the orders with the receipts.
    #[command(after_help = audit::AFTER_HELP)]
    Audit(audit::AuditOrdersArgs),
    /// Rank the representatives by their orders in a quarter
    Ranking {
        /// The quarter, such as 2027-Q1
        quarter: Quarter,
        #[arg(long, value_name = "CODE", default_value = "EUR")]
        currency: Currency,
    },
    /// Import products, SKUs, warehouses and initial stock from a CSV file
    ///
    /// A repeated import changes nothing.
    #[command(after_help = import::AFTER_HELP)]
    Import { file: PathBuf },
    /// Place orders of months that were paid before the SKU had products
    #[command(after_help = backfill::AFTER_HELP)]
    Backfill(backfill::BackfillArgs),
    /// Hire or reassign employees from a CSV file
    ///
    /// The file may also record that employees have left. A repeated import changes nothing.
    #[command(after_help = employees::AFTER_HELP)]
    People { file: PathBuf },
    /// Show employees
    Employees(employees::EmployeesArgs),
    /// Import regions, countries, locations, departments and jobs
    ///
    /// Reads a CSV file. A repeated import changes nothing.
    #[command(after_help = places::AFTER_HELP)]
    Places { file: PathBuf },
    /// Show the countries and the warehouses of a region
    Region { region: PlaceId },
    /// Show, estimate or increase the number of buckets of the index
    Shards(shards::OrdersShardsArgs),
}

/// The ids of one or more orders.
#[derive(Debug, Args)]
struct OrderIds {
    #[arg(value_name = "ORDER", required = true)]
    orders: Vec<OrderId>,
}

/// The filter of the list of orders.
#[derive(Debug, Args)]
struct ListOrdersArgs {
    /// OPEN, BACKORDERED, PICKED, SHIPPED, DELIVERED, RETURNED or CANCELLED [default: all]
    #[arg(long, value_name = "STATUS", value_parser = parse_order_status)]
    status: Vec<OrderStatus>,
    /// Only orders of this customer
    #[arg(long, value_name = "ACCOUNT", conflicts_with = "representative")]
    customer: Option<AccountId>,
    /// Only orders credited to this representative
    #[arg(long, value_name = "EMPLOYEE")]
    representative: Option<EmployeeId>,
    /// Only orders placed on this day or later
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    from: Option<NaiveDate>,
    /// Only orders placed on this day or earlier
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    to: Option<NaiveDate>,
    #[command(flatten)]
    limit: LimitArgs,
}

/// Parses the status of an order, in upper or lower case.
fn parse_order_status(text: &str) -> Result<OrderStatus, String> {
    use strum::IntoEnumIterator as _;
    let all = || OrderStatus::iter().map(|status| status.to_string()).collect::<Vec<_>>().join(", ");
    text.to_uppercase().parse().map_err(|_| format!("must be one of {}", all()))
}

/// Parses a product and its quantity, such as `beans=2`.
fn parse_order_line(text: &str) -> Result<OrderLine, String> {
    let (product, quantity) = text.split_once('=').ok_or("must be a product and its quantity, such as beans=2")?;
    let product = product.parse().map_err(|error| format!("the product {product:?} {error}"))?;
    Ok(OrderLine { product, quantity: parse_number_in_range::<u32>(quantity, 1..=1_000_000_000)? })
}

/// Runs `dueday orders`.
pub async fn run_orders_command(context: &CommandContext, args: &OrdersArgs) -> Result<Exit, Failure> {
    if let OrdersAction::Shards(shards) = &args.action
        && let Some(estimate) = shards.bucket_estimate()
    {
        return shards::print_bucket_estimate(context, estimate);
    }
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let desk = open_table.order_desk(context, &args.orders_table, BucketCount::new(args.order_buckets)).await;
    let desk = match (desk, &args.action) {
        // The settings of the order desk cannot be read, so no other command works. The audit reports them.
        (Err(Failure::Table(TableError::Unreadable { .. })), OrdersAction::Audit(audit)) => {
            return audit::audit_orders(context, &open_table.orders_table(&args.orders_table), &open_table, audit)
                .await;
        }
        (desk, _) => desk?,
    };
    // `publish_all_changes` places the orders of paid months. An import may define the products of SKUs for which
    // months are already paid, so `publish_all_changes` is called after an import, and before every other command.
    let is_import = matches!(args.action, OrdersAction::Import { .. });
    // The import of products needs regions, and orders need representatives. So the imports of places and of people may
    // come before the import of products, and place no orders.
    let is_preparation = matches!(args.action, OrdersAction::Places { .. } | OrdersAction::People { .. });
    if !is_import && !is_preparation {
        open_table.publish_all_changes(context).await?;
    }
    let exit = run_orders_action(context, &desk, &open_table, &args.action).await?;
    // Publishes the events of the orders that the command changed, and sends the mails about these events.
    if is_import {
        open_table.publish_all_changes(context).await?;
    } else if !is_preparation {
        open_table.publish_changes(context).await?;
    }
    let is_all_ordered = context.options.table().is_some() || !unplaced_orders_file(&context.options).exists();
    Ok(if exit == Exit::Done { Exit::done_if(is_all_ordered) } else { exit })
}

/// Runs the subcommand `action`.
async fn run_orders_action(
    context: &CommandContext,
    desk: &OrderDesk,
    open_table: &OpenTable,
    action: &OrdersAction,
) -> Result<Exit, Failure> {
    // Each change with `desk` writes an entry of the action log. Bulk commands (imports, `audit`, `backfill`) use
    // `desk_without_requester`, and write at most one entry for all their changes.
    let desk_without_requester = desk;
    let desk = &desk.requested_by(context.requester(&open_table.table));
    let zone = open_table.table.policy().zone;
    match action {
        OrdersAction::List(args) => list::list_orders(context, desk, zone, args).await,
        OrdersAction::Show { order } => list::show_order(context, desk, zone, *order).await,
        OrdersAction::Pick(ids) => list::change_order_status(context, desk, ids, OrderStatus::Picked).await,
        OrdersAction::PickList(args) => packing::print_pick_list(context, desk, open_table, args).await,
        OrdersAction::Ship(args) => packing::ship_orders(context, desk, args).await,
        OrdersAction::Deliver(ids) => list::change_order_status(context, desk, ids, OrderStatus::Delivered).await,
        OrdersAction::Return { orders, unsellable } => {
            let step = OrderStep { is_unsellable: *unsellable, ..OrderStatus::Returned.into() };
            list::change_status_of_each_order(context, desk, orders.orders.iter().map(|id| (*id, step.clone()))).await
        }
        OrdersAction::Cancel { orders, confirmation } => {
            confirmation.confirm(&format!("Cancel {}?", format_count(orders.orders.len() as u64, "order")))?;
            list::change_order_status(context, desk, orders, OrderStatus::Cancelled).await
        }
        OrdersAction::Lines { order, lines } => list::change_order_lines(context, desk, *order, lines).await,
        OrdersAction::Split(args) => follow_ups::split_order(context, desk, args).await,
        OrdersAction::Replace(args) => follow_ups::replace_products(context, desk, args).await,
        OrdersAction::Address(args) => address::set_address(context, desk, open_table, args).await,
        OrdersAction::HandOver { accounts, representative } => {
            customers::hand_over_customers(context, desk, open_table, accounts, representative).await
        }
        OrdersAction::Stock { product } => deliveries::show_stock(context, desk, product).await,
        OrdersAction::Receive { product, warehouse, quantity, delivery } => {
            deliveries::receive_delivery(context, desk, product, warehouse, *quantity, *delivery).await
        }
        OrdersAction::Count(args) => stock::count_stock(context, desk, args).await,
        OrdersAction::WriteOff(args) => stock::write_off_stock(context, desk, args).await,
        OrdersAction::Transfer(args) => stock::transfer_stock(context, desk, args).await,
        OrdersAction::Movements(args) => stock::list_stock_movements(context, desk, zone, args).await,
        OrdersAction::Audit(args) => {
            audit::audit_orders(context, &desk_without_requester.table, open_table, args).await
        }
        OrdersAction::Ranking { quarter, currency } => {
            list::rank_representatives(context, desk, *quarter, *currency).await
        }
        OrdersAction::People { file } => {
            employees::import_employees(context, desk_without_requester, open_table, file).await
        }
        OrdersAction::Employees(args) => employees::show_employees(context, desk, args).await,
        OrdersAction::Places { file } => places::import_places(context, desk_without_requester, open_table, file).await,
        OrdersAction::Region { region } => places::show_region(context, desk, region).await,
        OrdersAction::Import { file } => import::import_goods(context, desk_without_requester, open_table, file).await,
        OrdersAction::Backfill(args) => {
            backfill::backfill_orders(context, desk_without_requester, open_table, args).await
        }
        OrdersAction::Shards(shards) => shards::run_orders_shards_command(context, desk, shards).await,
    }
}
