//! The arguments of `dueday import` and `dueday export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `dueday import`.
#[derive(Debug, Args)]
#[command(after_help = "\
The first line names the columns, in any order: account, email, name, locale, external_id, sku, product_name, \
payment_day, amount, currency, customer, payment_method, first_payment_date. Amounts are decimals like 12.99. locale and \
first_payment_date may be blank. external_id is what your earlier system calls the subscription: the subscription's id is \
made of it and the account, so that a file may be imported again, or after an interruption, without doubling or resetting \
anything. What cannot be imported is listed in FILE.rejects.csv.

Exits with 0 when all rows are in, 1 when some were rejected, 2 when it could not go on (run it again), 130 when \
interrupted.

Examples:
  dueday import subscriptions.csv --dry-run
  dueday import subscriptions.csv
  dueday import subscriptions.csv --table dueday \\
      --time-zone Europe/Berlin --reminder-lead-days 7")]
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

/// `dueday export`.
#[derive(Debug, Args)]
#[command(after_help = "\
CSV has amounts as decimals; JSON lines have the objects that the API answers with.

Examples:
  dueday export subscriptions > subscriptions.csv
  dueday export receipts --format jsonl | gzip > receipts.gz")]
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
