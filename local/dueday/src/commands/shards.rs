//! `dueday shards`: how many partitions the indexes have, need, and shall have.

use clap::{Args, Subcommand};
use indicatif::HumanCount;
use serde::Serialize;
use store::{Demand, MAX_SHARDS, Needed};

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output::count;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 3] = [Column::whole("work"), Column::text("formula"), Column::number("shards")];

/// `dueday shards`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Without figures it says how many there are. With them it says how many are needed, and asks no table.

The number can be raised while everything runs, and is never lowered: the runs walk all shards that the settings name. \
`dueday reshard` moves what is there already; what is new goes to its place by itself.

Examples:
  dueday shards
  dueday shards --subscriptions 10000000 --peak-day 0.2 --rate 1000
  dueday shards set 16 --table dueday"
)]
pub struct ShardsArgs {
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Subscriptions in all
    #[arg(long, value_name = "N", requires = "rate")]
    pub subscriptions: Option<u64>,
    /// The share of them that is due on the busiest day
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = share)]
    pub peak_day: f64,
    /// Payments per second: what the gateway allows
    #[arg(long, value_name = "N", requires = "subscriptions", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,
    /// Subscriptions imported per second at the same time
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub imports: u32,
    /// Bytes of an index entry
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=400_000))]
    pub row_bytes: u32,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Raise the number of shards
    Set {
        /// How many there shall be
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SHARDS)))]
        shards: u32,
    },
}

#[derive(Serialize)]
struct Shards {
    shards: u32,
}

#[derive(Serialize)]
struct Explained {
    due_on_the_busiest_day: u64,
    seconds: u64,
    for_reads: u32,
    for_payments: u32,
    for_imports: u32,
    shards: u32,
}

pub async fn shards(context: &Context, args: &ShardsArgs) -> Result<Exit, Failure> {
    if let (Some(subscriptions), Some(rate)) = (args.subscriptions, args.rate) {
        return explain(context, args, subscriptions, rate);
    }
    let opened = Opened::open(context, Folder::Existing).await?;
    let shards = match args.action {
        None => opened.settings.shards,
        Some(Action::Set { shards }) => {
            let now = opened.table.raise_shards(shards).await?;
            if now > shards {
                return Err(Failure::Refused(format!(
                    "there are {now} shards, and the number is never lowered: a run walks those that the settings name, and \
                     what is in the others would never be charged"
                )));
            }
            now
        }
    };
    let hint = context.hint("reshard");
    context.print(&Shards { shards }, || match args.action {
        None => format!("{}\n", count(shards.into(), "shard")),
        Some(_) => format!(
            "{} from the next runs on; what is new goes to its place, and {hint} moves what is there\n",
            count(shards.into(), "shard")
        ),
    })?;
    Ok(Exit::Done)
}

fn explain(context: &Context, args: &ShardsArgs, subscriptions: u64, rate: u32) -> Result<Exit, Failure> {
    let Needed { reads, payments, imports } =
        Demand { payments: rate, imports: args.imports, row_bytes: args.row_bytes }.needed();
    let shards = Needed { reads, payments, imports }.shards();
    let due = (subscriptions as f64 * args.peak_day).ceil() as u64;
    let seconds = due.div_ceil(rate.into());
    let explained = Explained {
        due_on_the_busiest_day: due,
        seconds,
        for_reads: reads,
        for_payments: payments,
        for_imports: imports,
        shards,
    };
    context.print(&explained, || {
        let units = args.row_bytes.div_ceil(4_096).max(1);
        let rows = [
            ["read what is due".to_owned(), format!("{rate}/s x {units} x 0.5 / 3,000"), reads.to_string()],
            ["move what is paid".to_owned(), format!("1.5 x 2 x {rate}/s / 1,000"), payments.to_string()],
            ["import".to_owned(), format!("1.5 x {}/s / 1,000", args.imports), imports.to_string()],
        ];
        format!(
            "{}\n{} of {} subscriptions are due on the busiest day: {} at {rate} a second.\nChoose {shards} or \
             more; twice as many leave room.\n",
            table(&COLUMNS, rows.map(Vec::from)),
            HumanCount(due),
            HumanCount(subscriptions),
            duration(seconds),
        )
    })?;
    Ok(Exit::Done)
}

/// A share above 0 and up to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("must be a share above 0 and up to 1 like 0.2, not {text:?}"))
}

fn duration(seconds: u64) -> String {
    match (seconds / 3_600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes:02} min"),
    }
}
