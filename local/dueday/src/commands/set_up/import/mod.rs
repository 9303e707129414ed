//! `dueday import`: imports subscriptions from another system.
//!
//! The id of a subscription is computed from its account and its `external_id`. So a repeated or continued import finds
//! existing subscriptions, and does not change them.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use billing::ActionKind;
use clap::Args;
use indicatif::ProgressBar;

use crate::commands::value_parsers::parse_number_in_range;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output;
use crate::terminal::progress::ProgressDisplay;
use crate::{Exit, Failure};

mod batch;
mod column;
mod file_rows;
mod import_rows;
mod importer;
mod line_counter;
mod outcome;
mod parse_cell;
mod rejects;
mod row;
mod rows;
mod summary;

pub use row::ImportRow;
pub use rows::{parse_import_rows, read_import_rows};

use importer::Importer;
use rejects::RejectsFile;
use rows::ImportRowReader;
use summary::ImportReport;

/// The file name that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// The arguments of `dueday import`.
#[derive(Debug, Args)]
#[command(after_help = "\
The first line contains the column names, in any order: account, email, name, locale, external_id, sku, product_name, \
payment_day, amount, currency, customer, payment_method, first_payment_date. Cells are separated by commas, semicolons \
or tabs. The text is UTF-8, or UTF-16 with a byte order mark. An amount is written like 12.99 (1299 in a currency without \
decimals), a date like 2027-01-31, and payment_day is 1 to 31 or last. locale and first_payment_date may be blank. email, name and locale are only used \
for new accounts; all rows of an account must have the same. A price that the payment gateway can \
never charge is rejected.

A row is rejected if its account has another subscription of the same sku that is not cancelled, because the customer \
would be charged twice. Write true into the optional column allow_second, or give --allow-second for the whole file, \
if customers really have two. A dry run also lists ids that differ only in case, leading zeros or Unicode form; \
`dueday duplicates` finds them in the table.

Optional columns: status is active or paused; cancel_date is the due date on which a planned cancellation takes effect, \
so its payment is not charged; own_email is the address for the mails of this subscription; subscription is its id. With \
them, a file of `dueday export subscriptions` can be imported into another table: active and paused subscriptions keep \
their ids, and their columns that are computed, such as next_payment_date, are ignored. Subscriptions that are past due, \
unpaid or cancelled are rejected, and those with an import_obstacle, such as a payment in progress or a dispute.

external_id is the subscription's id in your earlier system. The new id of the subscription is computed from \
external_id and account, so a file can be imported again, also after an interruption: no subscription is created twice \
or changed. FILE.rejects.csv lists the rows that cannot be imported, and the subscriptions that exist with other \
values.

The command exits with 0 if all subscriptions exist as in the file, with 1 if rows were rejected or subscriptions \
exist with other values, with 2 if it could not continue (run it again), and with 130 if it was interrupted.

Examples:
  dueday import subscriptions.csv --dry-run
  dueday import subscriptions.csv
  zcat subscriptions.gz | dueday import - --rejects r.csv
  dueday import subscriptions.csv --table TABLE")]
pub struct ImportArgs {
    /// The CSV file; - for standard input
    #[arg(value_name = "FILE.csv")]
    pub file: PathBuf,
    /// Show the result, but write nothing to the table
    #[arg(long)]
    pub dry_run: bool,
    /// The largest number of rows per second, to leave capacity of the table to other users
    #[arg(long, value_name = "N", value_parser = |text: &str| parse_number_in_range(text, NonZeroU32::MIN..=NonZeroU32::MAX))]
    pub rate: Option<NonZeroU32>,
    /// Import rows even if their account has another subscription of the same SKU
    #[arg(long)]
    pub allow_second: bool,
    /// The file for rows that are not imported [default: FILE.rejects.csv]
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
}

/// Runs `dueday import`.
pub async fn run_import_command(context: &CommandContext, args: &ImportArgs) -> Result<Exit, Failure> {
    let (progress, file) = open_input(&args.file)?;
    let file_failure = |reason| Failure::File { path: args.file.clone(), reason };
    let rows = ImportRowReader::new(file).map_err(file_failure)?;
    let rejects =
        RejectsFile::new(args.rejects.clone().unwrap_or_else(|| default_rejects_path(&args.file)), &args.file)?;

    let open_table = OpenTable::open(context, FolderRequirement::CreateIfAbsent).await?;
    tokio::spawn(async {
        // Ctrl-C ends the process immediately, even while the import waits for input from a pipe. Imported rows stay in
        // the table, and a later import adds the other rows.
        if tokio::signal::ctrl_c().await.is_ok() {
            output::print_message("\ninterrupted; run the command again to continue: no row is imported twice");
            Exit::Interrupted.exit_process();
        }
    });
    let (table, action) = (open_table.table.clone(), context.new_log_entry(ActionKind::ImportSubscriptions, None));
    if !args.dry_run {
        // The action log gets an entry without counts before the work, so that the log also contains an interrupted
        // import.
        table.put_action(&action.on_job([])).await?;
    }
    let (importer, mut imported) =
        (Importer::new(context, open_table, args.dry_run, args.rate).await, ImportReport::default());
    let rows = rows.with_allow_second(args.allow_second).with_creation_date(context.today(&table));
    let result = importer.import_all_rows(rows, rejects, &progress, &mut imported).await;
    drop(progress);
    result.map_err(|failure| Failure::ImportEnded {
        failure: failure.into(),
        imported: imported.text_of_ended_import(),
    })?;
    if !args.dry_run {
        let counts = [("rows", imported.rows), ("created", imported.created), ("rejected", imported.rejected)];
        table.put_action(&action.on_job(counts)).await?;
    }
    context.print(&imported, || imported.to_string())?;
    Ok(Exit::done_if(imported.is_complete()))
}

/// Opens the file at `path`. The progress advances with the bytes that are read from it.
fn open_input(path: &Path) -> Result<(ProgressDisplay, impl Read + Send + 'static), Failure> {
    let show = |bar: ProgressBar, template| {
        ProgressDisplay::show(bar.with_message("0 rows"), template, |bar| format!("{} imported", bar.message()))
    };
    if path.as_os_str() == STANDARD_INPUT {
        if std::io::stdin().is_terminal() {
            output::print_message("reading standard input; end it with Ctrl-D");
        }
        let progress = show(ProgressBar::no_length(), "{spinner} {bytes} read, {msg}");
        let read: Box<dyn Read + Send> = Box::new(progress.wrap_read(std::io::stdin()));
        return Ok((progress, read));
    }
    let file_failure = |error: std::io::Error| Failure::File { path: path.to_owned(), reason: error.to_string() };
    let file = File::open(path).map_err(file_failure)?;
    let size = file.metadata().map_err(file_failure)?.len();
    let progress = show(ProgressBar::new(size), "{bar:30} {percent}%  {msg}{left}");
    let read: Box<dyn Read + Send> = Box::new(progress.wrap_read(file));
    Ok((progress, read))
}

/// Returns the default path of the file of rejects: `subscriptions.rejects.csv` for `subscriptions.csv`,
/// `stdin.rejects.csv` for standard input.
fn default_rejects_path(path: &Path) -> PathBuf {
    let path = if path.as_os_str() == STANDARD_INPUT { Path::new("stdin") } else { path };
    path.with_extension("rejects.csv")
}
