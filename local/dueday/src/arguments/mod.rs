//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use chrono::{NaiveDate, NaiveTime};
use clap::{Args, Parser, Subcommand, ValueEnum};
use shared::billing::{AccountId, SubscriptionId};

mod operation;
mod settings;

pub use operation::{Charging, KnownOutcome, Resolve, Runs, Switch, Why};
pub use settings::Settings;

/// Recurring payments on DynamoDB: the whole system on one machine.
///
/// Without a command it serves everything: the table, the API, the sandbox gateway, and the daily runs.
#[derive(Debug, Parser)]
#[command(name = "dueday", version, after_help = EXAMPLES, args_conflicts_with_subcommands = false)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: Serve,
    #[command(flatten)]
    pub settings: Settings,
}

const EXAMPLES: &str = "Examples:
  dueday                                 start everything
  dueday demo                            load a small merchant and play its last three months
  dueday due --date 2027-01-31           what a sweep of that day would find
  dueday run payments                    charge what is due today
  dueday import subscriptions.csv        bring in subscriptions from another system
  dueday subscriptions acme              look up an account's subscriptions
  dueday why acme 01JZXCVBNM0123456789ABCDEF --date 2027-01-31
  dueday export receipts > receipts.csv  copy all receipts
  dueday simulate --subscriptions 1000 --from 2026-02-01 --months 25

Commands work on the local table, also while `dueday` is serving it. due, accounts, subscriptions, receipts,
subscription, why, resolve, runs, charging, import and export take `--table NAME` for a table on AWS, with the credentials and the region that the AWS
CLI would use.";

/// What to do instead of serving.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a small merchant and play its last three months
    Demo,
    /// Run a batch once: send what reminders are due, or charge what payments are due
    Run(Run),
    /// Show what is due on or before a date
    Due(Due),
    /// Bring in subscriptions from a CSV file; doing it again changes nothing
    Import(Import),
    /// Show an account, or the first of all
    Accounts(Accounts),
    /// Show an account's subscriptions, or the first of all
    Subscriptions(Subscriptions),
    /// Show an account's receipts, newest first
    Receipts(Receipts),
    /// Pause, resume, cancel or uncancel a subscription
    Subscription(Subscription),
    /// Say why a subscription was charged on a day, or was not
    Why(Why),
    /// Settle an open payment whose outcome only a person can know
    Resolve(Resolve),
    /// Show whether a day's runs came to their end, shard by shard
    Runs(Runs),
    /// Switch charging on or off, or say which it is
    Charging(Charging),
    /// Serve the sandbox gateway alone, in a process of its own
    Gateway(Gateway),
    /// Copy all accounts, subscriptions or receipts as CSV or JSON lines
    Export(Export),
    /// Print the completion script of a shell
    Completions(Completions),
    /// Play months in a private table in memory, as fast as they can pass, and check every invariant
    Simulate(Simulate),
}

/// Where the servers listen.
#[derive(Debug, Args)]
#[command(next_help_heading = "Serving")]
pub struct Serve {
    /// Address of the DynamoDB port and of the gateway (the API stays on loopback)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", env = "DUEDAY_LISTEN")]
    pub listen: IpAddr,
    /// Port of the API
    #[arg(long, value_name = "PORT", default_value_t = 7878, env = "DUEDAY_API_PORT")]
    pub api_port: u16,
    /// Port that speaks DynamoDB
    #[arg(long, value_name = "PORT", default_value_t = 8000, env = "DUEDAY_DYNAMODB_PORT")]
    pub dynamodb_port: u16,
    /// Port of the sandbox gateway
    #[arg(long, value_name = "PORT", default_value_t = 7879, env = "DUEDAY_GATEWAY_PORT")]
    pub gateway_port: u16,
    /// Time of the daily run, and again two hours later [04:00 to 21:00]
    #[arg(long, value_name = "HH:MM", default_value = "06:00", value_parser = billing_time, env = "DUEDAY_BILLING_TIME")]
    pub billing_time: NaiveTime,
}

fn billing_time(text: &str) -> Result<NaiveTime, String> {
    let time = NaiveTime::parse_from_str(text, "%H:%M").map_err(|_| "must be a time like 06:00".to_owned())?;
    let hour = |hour| NaiveTime::from_hms_opt(hour, 0, 0).unwrap_or_default();
    // No time zone skips an hour between 4 and 23, and the second run comes two hours later.
    if (hour(4)..=hour(21)).contains(&time) { Ok(time) } else { Err("must be from 04:00 to 21:00".to_owned()) }
}

/// `dueday run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday run reminders\n  dueday run payments --date 2027-01-31")]
pub struct Run {
    pub batch: Batch,
    /// The day to sweep; today if absent, never a day ahead
    #[arg(long, value_name = "DATE")]
    pub date: Option<NaiveDate>,
}

/// A batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Batch {
    Reminders,
    Payments,
}

impl From<Batch> for shared::table::Batch {
    fn from(batch: Batch) -> Self {
        match batch {
            Batch::Reminders => Self::Reminders,
            Batch::Payments => Self::Payments,
        }
    }
}

/// `dueday due`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday due\n  dueday due --date 2027-01-31 --json --table dueday")]
pub struct Due {
    /// The day of the sweep; today if absent, any day ahead as a forecast
    #[arg(long, value_name = "DATE")]
    pub date: Option<NaiveDate>,
}

/// `dueday import`.
#[derive(Debug, Args)]
#[command(after_help = "\
The first line names the columns, in any order:
  account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date
Amounts are decimals like 12.99. locale and first_payment_date may be blank. external_id is what your earlier system calls
the subscription: the subscription's id is made of it and the account, so that a file may be imported again, or after an
interruption, without doubling or resetting anything. What cannot be imported is listed in FILE.rejects.csv.

Exits with 0 when all rows are in, 1 when some were rejected, 2 when it could not go on (run it again), 130 when
interrupted.

Examples:
  dueday import subscriptions.csv --dry-run
  dueday import subscriptions.csv
  dueday import subscriptions.csv --table dueday --time-zone Europe/Berlin --reminder-lead-days 7")]
pub struct Import {
    /// The file: CSV in UTF-8
    #[arg(value_name = "FILE.csv")]
    pub file: PathBuf,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where rejected rows are listed with line, field and reason [default: FILE.rejects.csv]
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
}

/// `dueday accounts`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday accounts acme\n  dueday accounts --json --table dueday")]
pub struct Accounts {
    /// The account; all if absent
    pub account: Option<AccountId>,
    #[command(flatten)]
    pub limit: Limit,
}

/// `dueday subscriptions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday subscriptions acme\n  dueday subscriptions acme --json")]
pub struct Subscriptions {
    /// The account; all if absent
    pub account: Option<AccountId>,
    #[command(flatten)]
    pub limit: Limit,
}

/// `dueday receipts`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  dueday receipts acme")]
pub struct Receipts {
    /// The account
    pub account: AccountId,
    #[command(flatten)]
    pub limit: Limit,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| "must be a number from 1".to_owned())
}

/// How much is shown.
#[derive(Clone, Copy, Debug, Args)]
pub struct Limit {
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub limit: usize,
}

/// `dueday subscription`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  dueday subscription pause acme 01JZXCVBNM0123456789ABCDEF
  dueday subscription cancel acme 01JZXCVBNM0123456789ABCDEF --at-period-end
With --table, give --time-zone and --reminder-lead-days as they are deployed.")]
pub struct Subscription {
    #[command(subcommand)]
    pub action: Action,
}

/// What is done with a subscription. Doing it twice is doing it once.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Stop payments until resumed; months whose due date falls in between are not owed
    Pause(Which),
    /// Take payments up again on the first payment day from today on
    Resume(Which),
    /// Cancel for good
    Cancel {
        #[command(flatten)]
        which: Which,
        /// Not now, but when the next due date comes, uncharged
        #[arg(long)]
        at_period_end: bool,
    },
    /// Undo a cancellation at period end
    Uncancel(Which),
}

/// One subscription.
#[derive(Debug, Args)]
pub struct Which {
    pub account: AccountId,
    pub subscription: SubscriptionId,
}

/// `dueday gateway`.
#[derive(Debug, Args)]
#[command(after_help = "\
It holds the data folder's ledger and nothing else: `dueday` can serve the rest of the same folder beside it.

Examples:
  dueday gateway
  dueday --gateway http://127.0.0.1:7879")]
pub struct Gateway {
    /// Address of the gateway
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", env = "DUEDAY_LISTEN")]
    pub listen: IpAddr,
    /// Port of the gateway
    #[arg(long, value_name = "PORT", default_value_t = 7879, env = "DUEDAY_GATEWAY_PORT")]
    pub gateway_port: u16,
}

/// `dueday export`.
#[derive(Debug, Args)]
#[command(after_help = "\
CSV has amounts as decimals; JSON lines have the objects that the API answers with.

Examples:
  dueday export subscriptions > subscriptions.csv
  dueday export receipts --format jsonl --table dueday | gzip > receipts.jsonl.gz")]
pub struct Export {
    pub what: Exported,
    /// csv, or jsonl: one JSON object a line
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub format: Format,
}

/// What is exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Exported {
    Accounts,
    Subscriptions,
    Receipts,
}

/// How it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    Csv,
    Jsonl,
}

/// `dueday completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  dueday completions bash > /etc/bash_completion.d/dueday")]
pub struct Completions {
    pub shell: clap_complete::Shell,
}

/// `dueday simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --faults, requests and answers are lost, runs end anywhere, the gateway or we are away for
days, and customers pause, cancel and change cards, prices and payment days. Then days pass without
trouble, and every charge in the gateway's ledger is checked against what was owed. Equal seeds make
equal trouble.

Examples:
  dueday simulate --subscriptions 1000 --from 2026-02-01 --months 25
  dueday simulate --subscriptions 30 --from 2027-12-01 --months 18 --faults 0.02 --seed 7")]
pub struct Simulate {
    /// How many subscriptions, spread over all payment days
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "file")]
    pub subscriptions: u32,
    /// The first day
    #[arg(long, value_name = "DATE")]
    pub from: NaiveDate,
    /// How many months
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=600))]
    pub months: u32,
    /// Subscriptions to play instead, in the columns of an import
    #[arg(long, value_name = "F.csv")]
    pub file: Option<PathBuf>,
    /// The part of all requests that something happens to, as 0.02
    #[arg(long, value_name = "PART", value_parser = part)]
    pub faults: Option<f64>,
    /// What the trouble is decided by; a new one if absent
    #[arg(long, value_name = "N", requires = "faults")]
    pub seed: Option<u64>,
}

fn part(text: &str) -> Result<f64, String> {
    let part: Option<f64> = text.parse().ok();
    part.filter(|part| (0.0..=0.5).contains(part)).ok_or_else(|| "must be a part from 0 to 0.5, as 0.02".to_owned())
}
