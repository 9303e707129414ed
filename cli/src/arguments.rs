//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use chrono::{NaiveDate, NaiveTime};
use clap::{Args, Parser, Subcommand, ValueEnum};
use shared::config::{Config, ConfigError, Env};

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
  dueday simulate --subscriptions 1000 --from 2026-02-01 --months 25";

/// What to do instead of serving.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a small merchant and play its last three months
    Demo,
    /// Run a batch once: send what reminders are due, or charge what payments are due
    Run(Run),
    /// Show what is due on or before a date
    Due(Due),
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

/// `dueday due`.
#[derive(Debug, Args)]
pub struct Due {
    /// The day of the sweep; today if absent, any day ahead as a forecast
    #[arg(long, value_name = "DATE")]
    pub date: Option<NaiveDate>,
}

/// `dueday simulate`.
#[derive(Debug, Args)]
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
}

/// Settings: each flag has an environment variable, the one that the functions on AWS read.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub struct Settings {
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// The data folder
    #[arg(long, global = true, value_name = "FOLDER", default_value = ".dueday", env = "DUEDAY_DATA")]
    pub data: PathBuf,
    /// The table's name [default: dueday]
    #[arg(long, global = true, value_name = "NAME", env = "DUEDAY_TABLE")]
    pub table_name: Option<String>,
    /// The billing time zone, an IANA name [default: UTC]
    #[arg(long, global = true, value_name = "ZONE", env = "DUEDAY_TIME_ZONE")]
    pub time_zone: Option<String>,
    /// Partitions of the indexes of a new table [default: 4]
    #[arg(long, global = true, value_name = "N", env = "DUEDAY_SHARDS")]
    pub shards: Option<String>,
    /// Days from reminder to payment, 0 to 27 [default: 7]
    #[arg(long, global = true, value_name = "DAYS", env = "DUEDAY_REMINDER_LEAD_DAYS")]
    pub reminder_lead_days: Option<String>,
    /// Days from each soft decline to the next try [default: 1,2,2,2]
    #[arg(long, global = true, value_name = "GAPS", env = "DUEDAY_RETRY_GAPS")]
    pub retry_gaps: Option<String>,
    /// What becomes of a subscription then: unpaid or cancelled [default: unpaid]
    #[arg(long, global = true, value_name = "STATUS", env = "DUEDAY_AFTER_LAST_RETRY")]
    pub after_last_retry: Option<String>,
    /// Days that receipts and records are kept [default: 190]
    #[arg(long, global = true, value_name = "DAYS", env = "DUEDAY_RECEIPT_DAYS")]
    pub receipt_days: Option<String>,
    /// Minutes that a claimed attempt belongs to its worker [default: 20]
    #[arg(long, global = true, value_name = "MINUTES", env = "DUEDAY_LEASE_MINUTES")]
    pub lease_minutes: Option<String>,
    /// Accounts worked on at the same time [default: 16]
    #[arg(long, global = true, value_name = "N", env = "DUEDAY_CONCURRENCY")]
    pub concurrency: Option<String>,
    /// Rows read from an index at once [default: 200]
    #[arg(long, global = true, value_name = "N", env = "DUEDAY_PAGE_ROWS")]
    pub page_rows: Option<String>,
    /// Charges per second [default: 25]
    #[arg(long, global = true, value_name = "N", env = "DUEDAY_GATEWAY_RATE")]
    pub gateway_rate: Option<String>,
    /// The name that mails and receipts are signed with [default: Dueday]
    #[arg(long, global = true, value_name = "NAME", env = "DUEDAY_MERCHANT")]
    pub merchant: Option<String>,
    /// The sender of mails
    #[arg(
        long,
        global = true,
        value_name = "SENDER",
        default_value = "Dueday <billing@example.com>",
        env = "DUEDAY_MAIL_FROM"
    )]
    pub mail_from: String,
}

impl Settings {
    /// The settings as the functions read them: through the same variables, by the same rules.
    pub fn config(&self) -> Result<Config, ConfigError> {
        Config::read(Env(&|name| {
            match name {
                "DUEDAY_TABLE" => &self.table_name,
                "DUEDAY_TIME_ZONE" => &self.time_zone,
                "DUEDAY_SHARDS" => &self.shards,
                "DUEDAY_REMINDER_LEAD_DAYS" => &self.reminder_lead_days,
                "DUEDAY_RETRY_GAPS" => &self.retry_gaps,
                "DUEDAY_AFTER_LAST_RETRY" => &self.after_last_retry,
                "DUEDAY_MERCHANT" => &self.merchant,
                "DUEDAY_RECEIPT_DAYS" => &self.receipt_days,
                "DUEDAY_LEASE_MINUTES" => &self.lease_minutes,
                "DUEDAY_CONCURRENCY" => &self.concurrency,
                "DUEDAY_PAGE_ROWS" => &self.page_rows,
                "DUEDAY_GATEWAY_RATE" => &self.gateway_rate,
                _ => &None,
            }
            .clone()
        }))
    }
}
