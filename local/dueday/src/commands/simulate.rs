//! `dueday simulate`: months in a private table in memory, as fast as they can pass, with every invariant checked; calm,
//! or in trouble.

use std::path::PathBuf;

use chrono::{DateTime, NaiveDate};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use shared::billing::SubscriptionId;
use simulator::{Enrolment, Odds, Simulation, TroubleSummary, population};
use ulid::Ulid;

use super::{import, values};
use crate::context::Context;
use crate::terminal::output;
use crate::{Exit, Failure};

/// `dueday simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --faults, requests and answers are lost, runs end anywhere, the gateway or we are away for days, and customers \
pause, cancel and change cards, prices and payment days. Then days pass without trouble, and every charge in the \
gateway's ledger is checked against what was owed. Equal seeds make equal trouble.

Examples:
  dueday simulate --from 2026-02-01 --months 25
  dueday simulate --subscriptions 30 --from 2027-12-01 \\
      --months 18 --faults 0.02 --seed 7")]
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
    /// What the trouble is decided by; a new one if absent
    #[arg(long, value_name = "N", requires = "faults", value_parser = values::seed)]
    pub seed: Option<u64>,
}

pub async fn simulate(context: &Context, args: &SimulateArgs) -> Result<Exit, Failure> {
    context.local_only("simulate")?;
    let rows = match &args.file {
        Some(path) => import::read(path, args.from)?.into_iter().map(enrolment).collect(),
        None => population(args.subscriptions),
    };
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} days, {msg}, {eta} left")
            .unwrap_or(ProgressStyle::default_bar()),
    );
    let odds = args.faults.map(|faults| Odds { faults, seed: args.seed.unwrap_or_else(rand::random) });
    let on_day = |progress: simulator::Progress| {
        bar.set_length(progress.days);
        bar.set_position(progress.days_done);
        bar.set_message(format!("{}: {} charged", progress.day, progress.charged));
    };
    let simulated = simulator::simulate(context.config.clone(), rows, (args.from, args.months), odds, on_day).await?;
    bar.finish_and_clear();
    context.print(&simulated, || text(&simulated))?;
    if let (Some(trouble), false) = (&simulated.trouble, simulated.holds()) {
        output::tell(format!("To see it again, give it --seed {} and the rest as before.", trouble.seed));
    }
    Ok(Exit::of(simulated.holds()))
}

fn enrolment(row: import::Row) -> Enrolment {
    let account = row.new_account(DateTime::UNIX_EPOCH);
    Enrolment { account, subscription: row.subscription(SubscriptionId::new(Ulid::nil())) }
}

fn text(simulated: &Simulation) -> String {
    let rows = [
        ("days", format!("{} to {}", simulated.from, simulated.to)),
        ("subscriptions", simulated.subscriptions.to_string()),
        ("charges", format!("{} ({})", simulated.charges, simulated.charged)),
        ("receipts", simulated.receipts.to_string()),
        ("reminders", simulated.reminders.to_string()),
        ("declined", simulated.declined.to_string()),
        ("processing", simulated.processing.to_string()),
        ("runs", simulated.runs.to_string()),
    ];
    let trouble = simulated.trouble.iter().flat_map(|trouble| {
        let TroubleSummary { seed, faults, crashes, outage_days, acts } = trouble;
        [
            ("seed", seed.to_string()),
            ("faults", format!("{faults}, of which {crashes} ended a run")),
            ("outages", format!("{outage_days} days")),
            ("customers", format!("acted {acts} times")),
        ]
    });
    let mut text = String::new();
    for (name, value) in rows.into_iter().chain(trouble) {
        text += &format!("{name:<14} {value}\n");
    }
    text += "\n";
    for finding in &simulated.findings {
        text += &format!("{}  {}\n", if finding.holds() { "holds " } else { "BROKEN" }, finding.invariant);
        for example in &finding.examples {
            text += &format!("          {example}\n");
        }
        if finding.violations > finding.examples.len() {
            text += &format!("          and {} more\n", finding.violations - finding.examples.len());
        }
    }
    text
}
