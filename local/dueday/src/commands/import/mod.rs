//! `dueday import`: subscriptions from another system, put in if they are absent.
//!
//! A subscription's identifier is made of its account and its `external_id`: importing a file again, or going on after
//! an interruption, finds what is there and leaves it as it is.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output;
use crate::{Exit, Failure};

mod batch;
mod column;
mod importer;
mod lines;
mod mended;
mod rejects;
mod row;
mod rows;
mod summary;

pub use row::Row;
pub use rows::{parse, read};

use importer::Importer;
use rejects::Rejects;
use rows::Rows;

/// The name of standard input.
const STANDARD_INPUT: &str = "-";

/// `dueday import`.
#[derive(Debug, Args)]
#[command(after_help = "\
The first line names the columns, in any order: account, email, name, locale, external_id, sku, product_name, \
payment_day, amount, currency, customer, payment_method, first_payment_date. Cells are separated by commas, semicolons or \
tabs; the text is UTF-8, or UTF-16 with a byte order mark. Amounts are like 12.99, dates like 2027-01-31, and payment_day \
is 1 to 31 or last. locale and first_payment_date may be blank. email, name and locale count when an account is made; \
later it keeps its own.

external_id is what your earlier system calls the subscription. The subscription's id is made of it and the account: a \
file may be imported again, or after an interruption, and nothing is doubled or reset. FILE.rejects.csv lists what cannot \
be imported, and what is there with other values.

Exits with 0 when all rows are in, 1 when some were rejected or are there with other values, 2 when it could not go on \
(run it again), 130 when interrupted.

Examples:
  dueday import subscriptions.csv --dry-run
  dueday import subscriptions.csv
  zcat subscriptions.gz | dueday import - --rejects r.csv
  dueday import subscriptions.csv --table dueday \\
      --time-zone Europe/Berlin --reminder-lead-days 7")]
pub struct ImportArgs {
    /// The file: CSV; - for standard input
    #[arg(value_name = "FILE.csv")]
    pub file: PathBuf,
    /// Say what would be done, and write nothing to the table
    #[arg(long)]
    pub dry_run: bool,
    /// Rows per second at most, for a table whose capacity others need too
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(NonZeroU32))]
    pub rate: Option<NonZeroU32>,
    /// Where rows are listed that are not imported [default: FILE.rejects.csv]
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
}

pub async fn import(context: &Context, args: &ImportArgs) -> Result<Exit, Failure> {
    let (bar, file) = input(&args.file)?;
    let wrong = |reason| Failure::File { path: args.file.clone(), reason };
    let rows = Rows::new(file, context.today()).map_err(wrong)?;
    let rejects = Rejects::new(args.rejects.clone().unwrap_or_else(|| beside(&args.file)), &args.file)?;

    context.deployed_as_told()?;
    let opened = Opened::open(context, Folder::MadeIfAbsent).await?;
    tokio::spawn(async {
        // At once, even if it waits for a file that is a pipe: whatever is done is done, the rest is for the next time.
        if tokio::signal::ctrl_c().await.is_ok() {
            output::tell("\ninterrupted; run it again to go on, nothing is doubled");
            Exit::Interrupted.now();
        }
    });
    let imported = Importer::new(context, opened, args.dry_run, args.rate).import(rows, rejects, &bar).await;
    bar.finish_and_clear();
    let imported = imported?;
    context.print(&imported, || imported.to_string())?;
    Ok(Exit::of(imported.is_all_in()))
}

/// The file at `path`, with a bar that advances as it is read.
fn input(path: &Path) -> Result<(ProgressBar, impl Read + Send + 'static), Failure> {
    let style = |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    if path.as_os_str() == STANDARD_INPUT {
        if std::io::stdin().is_terminal() {
            output::tell("reading standard input; end it with Ctrl-D");
        }
        let bar = ProgressBar::no_length().with_style(style("{spinner} {bytes} read, {msg}"));
        let read: Box<dyn Read + Send> = Box::new(bar.wrap_read(std::io::stdin()));
        return Ok((bar, read));
    }
    let wrong = |error: std::io::Error| Failure::File { path: path.to_owned(), reason: error.to_string() };
    let file = File::open(path).map_err(wrong)?;
    let size = file.metadata().map_err(wrong)?.len();
    let bar = ProgressBar::new(size).with_style(style("{bar:30} {percent}%  {msg}, {eta} left"));
    let read: Box<dyn Read + Send> = Box::new(bar.wrap_read(file));
    Ok((bar, read))
}

/// `subscriptions.csv` has its rejects in `subscriptions.rejects.csv`, standard input in `stdin.rejects.csv`.
fn beside(path: &Path) -> PathBuf {
    let path = if path.as_os_str() == STANDARD_INPUT { Path::new("stdin") } else { path };
    path.with_extension("rejects.csv")
}
