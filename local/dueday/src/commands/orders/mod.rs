//! `dueday orders`: the order desk.

mod csv_file;
mod goods;
mod list;
mod people;
mod places;
pub mod setup;
mod shards;

use std::path::PathBuf;

use billing::{AccountId, Currency, Label};
use chrono::NaiveDate;
use clap::{Args, Subcommand};
use orders::{Buckets, EmployeeId, OrderDesk, OrderId, OrderStatus, PlaceId, ProductId, Quarter, WarehouseId};
use ulid::Ulid;

use super::values::date;
use crate::context::Context;
use crate::machine::data::{Folder, not_ordered};
use crate::machine::opened::Opened;
use crate::{Exit, Failure};

/// `dueday orders`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each month that is paid becomes one order, if its SKU has products: `dueday orders import` says which, and what lies in \
the warehouses. An order waits (BACKORDERED) until its customer has an address and a warehouse has all that it needs.

Examples:
  dueday orders import stock.csv
  dueday orders address acme --name 'Acme Ltd' --street '1 High Street' --city Leeds --postal-code LS1 --country gb --region eu
  dueday orders list --status OPEN
  dueday orders ship 2027-01-31.01JZXCVBNM0123456789ABCDEF
  dueday orders receive beans ams 500

On one machine, exits with 1 while a month that was paid could not be ordered.")]
pub struct OrdersArgs {
    /// The order desk's table on AWS, with --table
    #[arg(long, value_name = "NAME", default_value = "dueday-orders", env = "DUEDAY_ORDERS_TABLE", global = true)]
    orders_table: String,
    /// Partitions of the index over all orders of a new table, with --table
    #[arg(long, value_name = "N", default_value_t = 4, env = "DUEDAY_ORDER_BUCKETS", global = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    order_buckets: u32,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show orders, the oldest first
    List(ListArgs),
    /// Show an order with its lines
    Show {
        #[arg(value_name = "ORDER")]
        order: OrderId,
    },
    /// Orders were picked
    Pick(Ids),
    /// Orders were shipped
    Ship(Ids),
    /// Orders were delivered
    Deliver(Ids),
    /// Orders came back: their stock is given back
    Return(Ids),
    /// Cancel orders that are not shipped: their stock is given back
    Cancel(Ids),
    /// Say where a customer's orders go, and fill those that have waited for it
    Address(AddressArgs),
    /// Hand a customer over to another representative, with its orders that are not shipped
    HandOver { account: AccountId, representative: EmployeeId },
    /// Show a product's stock by warehouse
    Stock { product: ProductId },
    /// So many of a product have arrived in a warehouse; fill what has waited for them
    Receive {
        product: ProductId,
        warehouse: WarehouseId,
        #[arg(value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
        quantity: u64,
        /// A ULID of your own for this delivery: told again with it, it is not counted twice
        #[arg(long, value_name = "ULID")]
        delivery: Option<Ulid>,
    },
    /// Show the representatives by what their customers have ordered in a quarter
    Ranking {
        /// Such as 2027-Q1
        quarter: Quarter,
        #[arg(long, value_name = "CODE", default_value = "EUR")]
        currency: Currency,
    },
    /// Bring in products, what SKUs are made of, warehouses and opening stock from a CSV file; again changes nothing
    #[command(after_help = setup::AFTER_HELP)]
    Import { file: PathBuf },
    /// Hire, move and let go who works here, from a CSV file; again changes nothing
    #[command(after_help = people::AFTER_HELP)]
    People { file: PathBuf },
    /// Show employees
    Employees(people::EmployeesArgs),
    /// Bring in regions, countries, locations, departments and jobs from a CSV file; again changes nothing
    #[command(after_help = places::AFTER_HELP)]
    Places { file: PathBuf },
    /// Show the countries and the warehouses of a region
    Region { region: PlaceId },
    /// Say how many buckets the index over all orders has or needs, or raise their number
    Shards(shards::ShardsArgs),
}

/// Which orders.
#[derive(Debug, Args)]
struct Ids {
    #[arg(value_name = "ORDER", required = true)]
    orders: Vec<OrderId>,
}

/// Which of all orders.
#[derive(Debug, Args)]
struct ListArgs {
    /// OPEN, BACKORDERED, PICKED, SHIPPED, DELIVERED, RETURNED or CANCELLED; each if absent
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Vec<OrderStatus>,
    /// This customer's
    #[arg(long, value_name = "ACCOUNT", conflicts_with = "representative")]
    customer: Option<AccountId>,
    /// With which this representative is credited
    #[arg(long, value_name = "EMPLOYEE")]
    representative: Option<EmployeeId>,
    /// Placed on this day or later
    #[arg(long, value_name = "DATE", value_parser = date)]
    from: Option<NaiveDate>,
    /// Placed on this day or before
    #[arg(long, value_name = "DATE", value_parser = date)]
    to: Option<NaiveDate>,
}

/// Where orders go.
#[derive(Debug, Args)]
struct AddressArgs {
    account: AccountId,
    #[arg(long)]
    name: Label,
    #[arg(long)]
    street: Label,
    #[arg(long, value_name = "CODE")]
    postal_code: Label,
    #[arg(long)]
    city: Label,
    #[arg(long)]
    country: PlaceId,
    /// By which a warehouse is chosen
    #[arg(long)]
    region: PlaceId,
}

fn status(text: &str) -> Result<OrderStatus, String> {
    use strum::IntoEnumIterator as _;
    let all = || OrderStatus::iter().map(|status| status.to_string()).collect::<Vec<_>>().join(", ");
    text.to_uppercase().parse().map_err(|_| format!("must be one of {}", all()))
}

pub async fn orders(context: &Context, args: &OrdersArgs) -> Result<Exit, Failure> {
    if let Action::Shards(shards) = &args.action
        && let Some(demand) = shards.demand()
    {
        return shards::explain(context, demand);
    }
    let opened = Opened::open(context, Folder::Existing).await?;
    let desk = opened.order_desk(context, &args.orders_table, Buckets::new(args.order_buckets)).await?;
    // What was paid before goods were brought in is ordered after it.
    let brings_goods = matches!(args.action, Action::Import { .. });
    if !brings_goods {
        opened.catch_up(context).await?;
    }
    let exit = act(context, &desk, &opened, &args.action).await?;
    if brings_goods {
        opened.catch_up(context).await?;
    }
    let is_all_ordered = context.options.table().is_some() || !not_ordered(&context.options).exists();
    Ok(if exit == Exit::Done { Exit::of(is_all_ordered) } else { exit })
}

async fn act(context: &Context, desk: &OrderDesk, opened: &Opened, action: &Action) -> Result<Exit, Failure> {
    match action {
        Action::List(wanted) => list::list(context, desk, wanted).await,
        Action::Show { order } => list::show(context, desk, *order).await,
        Action::Pick(ids) => list::advance(context, desk, ids, OrderStatus::Picked).await,
        Action::Ship(ids) => list::advance(context, desk, ids, OrderStatus::Shipped).await,
        Action::Deliver(ids) => list::advance(context, desk, ids, OrderStatus::Delivered).await,
        Action::Return(ids) => list::advance(context, desk, ids, OrderStatus::Returned).await,
        Action::Cancel(ids) => list::advance(context, desk, ids, OrderStatus::Cancelled).await,
        Action::Address(address) => goods::address(context, desk, opened, address).await,
        Action::HandOver { account, representative } => {
            goods::hand_over(context, desk, opened, account, representative).await
        }
        Action::Stock { product } => goods::stock(context, desk, product).await,
        Action::Receive { product, warehouse, quantity, delivery } => {
            goods::receive(context, desk, product, warehouse, *quantity, *delivery).await
        }
        Action::Ranking { quarter, currency } => list::ranking(context, desk, *quarter, *currency).await,
        Action::People { file } => people::import(context, desk, file).await,
        Action::Employees(wanted) => people::employees(context, desk, wanted).await,
        Action::Places { file } => places::import(context, desk, file).await,
        Action::Region { region } => places::region(context, desk, region).await,
        Action::Import { file } => setup::import(context, desk, file).await,
        Action::Shards(shards) => shards::shards(context, desk, shards).await,
    }
}
