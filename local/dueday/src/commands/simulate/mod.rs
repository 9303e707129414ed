//! `dueday simulate`: months in a private table in memory, as fast as they can pass, with every invariant checked; calm,
//! or in trouble.

mod calm;
mod trouble;

use std::path::PathBuf;
use std::time::Duration;

use billing::SubscriptionId;
use chrono::{DateTime, NaiveDate};
use clap::Args;
use simulator::{Enrolment, population};
use ulid::Ulid;

use super::{import, values};
use crate::context::Context;
use crate::{Exit, Failure};

/// `dueday simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --faults, several runs of both batches go on at once, on clocks that differ, while customers and operators act \
through the API: requests and answers are lost, functions are frozen or end anywhere, indexes lag, and the gateway is \
away, or answers late, twice or what is not so. An oracle judges every write, charge and mail. Equal seeds make equal \
trouble.

With --stripe, the gateway is a stand-in for Stripe behind the Stripe adapter. Its responses are errors before and after a payment \
was made, or hours before one is made. The oracle reads the stand-in's books, never its responses.

Examples:
  dueday simulate --from 2026-02-01 --months 25
  dueday simulate --subscriptions 30 --from 2027-12-01 \\
      --months 12 --faults 0.02 --seed 7
  dueday simulate --subscriptions 60 --from 2027-12-01 \\
      --months 12 --faults 0.02 --for 2h
  dueday simulate --subscriptions 60 --from 2027-12-01 \\
      --months 12 --faults 0.02 --stripe")]
pub struct SimulateArgs {
    /// How many subscriptions, spread over all payment days
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        conflicts_with = "file",
        value_parser = |text: &str| values::number(text, 1..=10_000_000)
    )]
    pub subscriptions: u32,
    /// The first day
    #[arg(long, value_name = "DATE", value_parser = values::date)]
    pub from: NaiveDate,
    /// How many months
    #[arg(long, value_name = "M", value_parser = |text: &str| values::number(text, 1..=600))]
    pub months: u32,
    /// Subscriptions to play instead, in the columns of an import
    #[arg(long, value_name = "F.csv")]
    pub file: Option<PathBuf>,
    /// The part of all requests that something happens to, such as 0.02
    #[arg(long, value_name = "PART", value_parser = values::part)]
    pub faults: Option<f64>,
    /// Charge through the Stripe adapter, at a stand-in for Stripe that fails as badly as Stripe may
    #[arg(long, requires = "faults")]
    pub stripe: bool,
    /// What the trouble is decided by; a new one if absent
    #[arg(long, value_name = "N", requires = "faults", value_parser = values::seed)]
    pub seed: Option<u64>,
    /// How many seeds to play, from that one on
    #[arg(
        long,
        value_name = "N",
        requires = "faults",
        conflicts_with = "time",
        value_parser = |text: &str| values::number(text, 1..=1_000_000_000)
    )]
    pub seeds: Option<u32>,
    /// Play seeds for so long, such as 90s, 20m or 2h
    #[arg(long = "for", value_name = "TIME", requires = "faults", value_parser = values::time)]
    pub time: Option<Duration>,
}

pub async fn simulate(context: &Context, args: &SimulateArgs) -> Result<Exit, Failure> {
    context.local_only("simulate")?;
    let rows = match &args.file {
        Some(path) => import::read(path, args.from)?.into_iter().map(enrolment).collect(),
        None => population(args.subscriptions),
    };
    match args.faults {
        None => calm::simulate(context, args, rows).await,
        Some(faults) => trouble::simulate(context, args, rows, faults),
    }
}

fn enrolment(row: import::Row) -> Enrolment {
    let account = row.new_account(DateTime::UNIX_EPOCH);
    Enrolment { account, subscription: row.subscription(SubscriptionId::new(Ulid::nil())) }
}

/// Names and what they come to, a line each.
fn lines<const N: usize>(rows: [(&str, String); N]) -> String {
    rows.into_iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect()
}
