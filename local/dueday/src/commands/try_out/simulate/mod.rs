//! `dueday simulate`: simulates months in a table in memory, with or without faults, and checks every invariant.

mod simulation_files;
mod with_faults;
mod without_faults;

use std::path::PathBuf;
use std::time::Duration;

use billing::SubscriptionId;
use chrono::{DateTime, NaiveDate};
use clap::Args;
use simulator::{NewSubscriber, generate_subscribers};
use ulid::Ulid;

use crate::commands::set_up::import;
use crate::commands::value_parsers;
use crate::context::CommandContext;
use crate::{Exit, Failure};

/// The arguments of `dueday simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --faults, several runs of both batches work concurrently, on different clocks, while customers and operators use \
the API. Requests and responses are lost, functions are suspended or killed at any point, and indexes lag. The gateway \
is unavailable, or responds late, twice or incorrectly. A checker verifies every write, charge and mail. The same seed \
causes the same faults.

With --stripe, the gateway is a stand-in for Stripe, used through the Stripe adapter. It returns errors before a \
payment is made, after a payment was made, or hours before a payment is made. The checker reads the stand-in's records \
of payments, not its responses. At the end, a backup replaces the table of most seeds, and people execute the steps \
after a restore.

With --keep, the folder gets the events of the simulation as the archive has them: a file for each day, with late and \
repeated events. Try a program that consumes events with them. The file items.jsonl contains the items of the table at \
the end.

Examples:
  dueday simulate --from 2026-02-01 --months 25
  dueday simulate --subscriptions 30 --from 2027-12-01 \\
      --months 12 --faults 0.02 --seed 7
  dueday simulate --subscriptions 60 --from 2027-12-01 \\
      --months 12 --faults 0.02 --for 2h
  dueday simulate --subscriptions 60 --from 2027-12-01 \\
      --months 12 --faults 0.02 --stripe
  dueday simulate --subscriptions 60 --from 2027-12-01 \\
      --months 12 --faults 0.02 --keep year")]
pub struct SimulateArgs {
    /// The number of subscriptions, spread over all payment days
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        conflicts_with = "file",
        value_parser = |text: &str| value_parsers::parse_number_in_range::<u32>(text, 1..=10_000_000)
    )]
    pub subscriptions: u32,
    /// The first day
    #[arg(long, value_name = "DATE", value_parser = value_parsers::parse_date)]
    pub from: NaiveDate,
    /// The number of months
    #[arg(long, value_name = "M", value_parser = |text: &str| value_parsers::parse_number_in_range::<u32>(text, 1..=600))]
    pub months: u32,
    /// A file of subscriptions to simulate instead, with the columns of an import
    #[arg(long, value_name = "F.csv")]
    pub file: Option<PathBuf>,
    /// The fraction of requests with a fault, such as 0.02
    #[arg(long, value_name = "PART", value_parser = value_parsers::parse_fault_fraction)]
    pub faults: Option<f64>,
    /// Charge through the Stripe adapter, at a stand-in for Stripe with random failures
    #[arg(long, requires = "faults")]
    pub stripe: bool,
    /// The seed of the random faults [default: a random seed]
    #[arg(long, value_name = "N", requires = "faults", value_parser = value_parsers::parse_seed)]
    pub seed: Option<u64>,
    /// The number of consecutive seeds to simulate
    #[arg(
        long,
        value_name = "N",
        requires = "faults",
        conflicts_with = "time",
        value_parser = |text: &str| value_parsers::parse_number_in_range::<u32>(text, 1..=1_000_000_000)
    )]
    pub seeds: Option<u32>,
    /// Simulate further seeds for this time, such as 90s, 20m or 2h
    #[arg(long = "for", value_name = "TIME", requires = "faults", value_parser = value_parsers::parse_duration)]
    pub time: Option<Duration>,
    /// Write the events of the simulation, and the items of its table, to this new folder
    #[arg(long, value_name = "FOLDER", requires = "faults", conflicts_with_all = ["seeds", "time"])]
    pub keep: Option<PathBuf>,
}

/// Runs `dueday simulate`.
pub async fn run_simulate_command(context: &CommandContext, args: &SimulateArgs) -> Result<Exit, Failure> {
    context.require_local_table("simulate")?;
    let rows = match &args.file {
        Some(path) => import::read_import_rows(path, args.from)?.into_iter().map(to_new_subscriber).collect(),
        None => generate_subscribers(args.subscriptions),
    };
    match args.faults {
        None => without_faults::print_simulation_without_faults(context, args, rows).await,
        Some(faults) => with_faults::simulate_with_faults(context, args, rows, faults),
    }
}

/// Converts a row of an import to a subscriber of the simulation.
fn to_new_subscriber(row: import::ImportRow) -> NewSubscriber {
    let account = row.new_account(DateTime::UNIX_EPOCH);
    NewSubscriber { account, subscription: row.subscription(SubscriptionId::new(Ulid::nil())) }
}

/// Formats each pair of a name and a value as one line.
fn format_names_and_values<const N: usize>(rows: [(&str, String); N]) -> String {
    rows.into_iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect()
}
