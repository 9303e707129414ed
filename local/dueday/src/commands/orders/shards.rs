//! How many buckets the index over all orders has, needs, and shall have.

use clap::{Args, Subcommand};
use indicatif::HumanCount;
use orders::{Buckets, Demand, OrderDesk};
use serde::Serialize;

use crate::context::Context;
use crate::terminal::output::count;
use crate::{Exit, Failure};

/// `dueday orders shards`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Without figures it says how many there are. With them it says how many let all orders of a status be read within a second, \
by the formula of AWS's example of relational data in DynamoDB, and asks no table.

Examples:
  dueday orders shards --orders 3000000 --percent 20 --item-bytes 250
  dueday orders shards set 15"
)]
pub struct ShardsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Orders in all
    #[arg(long, value_name = "N")]
    orders: Option<u64>,
    /// Of a hundred of them, so many are in the status that is looked at
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    percent: u32,
    /// Bytes of an order in the index
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..=400_000))]
    item_bytes: u32,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Raise the number of buckets
    Set {
        /// How many there shall be
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
        buckets: u32,
    },
}

#[derive(Serialize)]
struct Count {
    buckets: u32,
}

#[derive(Serialize)]
struct Explained {
    items_per_read_unit: u64,
    items_per_partition_and_second: u64,
    buckets: u64,
}

impl ShardsArgs {
    /// What is to be explained.
    pub fn demand(&self) -> Option<Demand> {
        let Self { percent, item_bytes, .. } = *self;
        self.orders.map(|orders| Demand { orders, percent, item_bytes })
    }
}

pub fn explain(context: &Context, demand: Demand) -> Result<Exit, Failure> {
    let explained = Explained {
        items_per_read_unit: demand.items_per_unit(),
        items_per_partition_and_second: demand.items_per_partition(),
        buckets: demand.buckets(),
    };
    context.print(&explained, || {
        let Explained { items_per_read_unit, items_per_partition_and_second, buckets } = &explained;
        format!(
            "items that a read unit reads       4,096 / {} = {items_per_read_unit}\n\
             items that a partition reads       {items_per_read_unit} x 3,000 = {}/s\n\
             buckets                            {}% of {} / {} = {buckets}\n\
             Choose {buckets} or more; orders are added for years.\n",
            demand.item_bytes,
            HumanCount(*items_per_partition_and_second),
            demand.percent,
            HumanCount(demand.orders),
            HumanCount(*items_per_partition_and_second),
        )
    })?;
    Ok(Exit::Done)
}

pub async fn shards(context: &Context, desk: &OrderDesk, args: &ShardsArgs) -> Result<Exit, Failure> {
    let buckets = match args.action {
        None => desk.buckets().count(),
        Some(Action::Set { buckets }) => {
            let now = desk.table.raise_buckets(Buckets::new(buckets)).await?.count();
            if now > buckets {
                return Err(Failure::Refused(format!(
                    "there are {now} buckets, and the number is never lowered: what is in the others would not be seen"
                )));
            }
            now
        }
    };
    context.print(&Count { buckets }, || format!("{}\n", count(buckets.into(), "bucket")))?;
    Ok(Exit::Done)
}
