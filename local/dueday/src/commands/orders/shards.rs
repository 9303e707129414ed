//! Shows, estimates and increases the number of buckets of the index over all orders.

use clap::{Args, Subcommand};
use indicatif::HumanCount;
use orders_desk::OrderDesk;
use orders_table::{BucketCount, BucketEstimate};
use serde::Serialize;

use crate::commands::value_parsers::parse_number_in_range;
use crate::context::CommandContext;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::output::format_count;
use crate::{Exit, Failure};

/// The arguments of `dueday orders shards`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Without options the command shows the current number of buckets. With --orders it estimates, without a table, the \
number of buckets that is needed to read all orders with one status within a second. The formula comes from AWS's \
example of relational data in DynamoDB.

Examples:
  dueday orders shards --orders 3000000 --percent 20 --item-bytes 250
  dueday orders shards set 15"
)]
pub struct OrdersShardsArgs {
    #[command(subcommand)]
    action: Option<BucketsAction>,
    /// The total number of orders
    #[arg(long, value_name = "N")]
    orders: Option<u64>,
    /// The percentage of orders with the status that is read
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = |text: &str| parse_number_in_range::<u32>(text, 1..=100))]
    percent: u32,
    /// The size of an order's entry in the index, in bytes
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = |text: &str| parse_number_in_range::<u32>(text, 1..=400_000))]
    item_bytes: u32,
}

#[derive(Debug, Subcommand)]
enum BucketsAction {
    /// Increase the number of buckets (partitions of the index over all orders)
    Set {
        /// The new number
        #[arg(value_name = "N", value_parser = |text: &str| parse_number_in_range::<u32>(text, 1..=1_000))]
        buckets: u32,
        #[command(flatten)]
        confirmation: ConfirmationArgs,
    },
}

/// The number of buckets, as printed with `--json`.
#[derive(Serialize)]
struct BucketCountView {
    buckets: u32,
}

/// The estimated number of buckets and how it is computed, as printed with `--json`.
#[derive(Serialize)]
struct BucketEstimateView {
    items_per_read_unit: u64,
    read_units_per_item: u64,
    items_per_partition_and_second: u64,
    buckets: u64,
}

impl OrdersShardsArgs {
    /// Returns the estimate to print; `None` without --orders.
    pub fn bucket_estimate(&self) -> Option<BucketEstimate> {
        let Self { percent, item_bytes, .. } = *self;
        self.orders.map(|orders| BucketEstimate { orders, percent, item_bytes })
    }
}

/// Prints the estimated number of buckets.
pub fn print_bucket_estimate(context: &CommandContext, estimate: BucketEstimate) -> Result<Exit, Failure> {
    let view = BucketEstimateView {
        items_per_read_unit: estimate.items_per_read_unit(),
        read_units_per_item: estimate.read_units_per_item(),
        items_per_partition_and_second: estimate.items_per_partition_second(),
        buckets: estimate.buckets(),
    };
    context.print(&view, || {
        let BucketEstimateView { items_per_read_unit, read_units_per_item, .. } = &view;
        let BucketEstimateView { items_per_partition_and_second, buckets, .. } = &view;
        let (size, per_second) = match read_units_per_item {
            1 => (
                format!("orders per read unit               4,096 / {} = {items_per_read_unit}", estimate.item_bytes),
                format!("{items_per_read_unit} x 3,000"),
            ),
            _ => (
                format!("read units per order               {} / 4,096 = {read_units_per_item}", estimate.item_bytes),
                format!("3,000 / {read_units_per_item}"),
            ),
        };
        format!(
            "{size}\n\
             orders per partition and second    {per_second} = {}\n\
             buckets                            {}% of {} / {} = {buckets}\n\
             Use {buckets} or more buckets: the number of orders grows for years.\n",
            HumanCount(*items_per_partition_and_second),
            estimate.percent,
            HumanCount(estimate.orders),
            HumanCount(*items_per_partition_and_second),
        )
    })?;
    Ok(Exit::Done)
}

/// Shows or increases the number of buckets.
pub async fn run_orders_shards_command(
    context: &CommandContext,
    desk: &OrderDesk,
    args: &OrdersShardsArgs,
) -> Result<Exit, Failure> {
    let buckets = match args.action {
        None => desk.buckets().count(),
        Some(BucketsAction::Set { buckets, confirmation }) => {
            confirmation.confirm(&format!("Increase the number of buckets to {buckets}?"))?;
            let now = desk.table.raise_buckets(BucketCount::new(buckets)).await?.count();
            if now > buckets {
                return Err(Failure::Refused(format!(
                    "there are {now} buckets, and the number cannot be decreased: lists would not contain the orders \
                     in the other buckets"
                )));
            }
            now
        }
    };
    context.print(&BucketCountView { buckets }, || format!("{}\n", format_count(buckets.into(), "bucket")))?;
    Ok(Exit::Done)
}
