//! `dueday shards`: shows, estimates and increases the number of shards of the indexes.

use billing::ActionKind;
use clap::{Args, Subcommand};
use indicatif::HumanCount;
use serde::Serialize;
use store::{MAX_SHARDS, PeakLoad, RequiredShards};

use crate::commands::value_parsers::parse_number_in_range;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::output::format_count;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of required shards.
const COLUMNS: [TableColumn; 3] =
    [TableColumn::unwrapped("work"), TableColumn::text("formula"), TableColumn::number("shards")];

/// The arguments of `dueday shards`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Without options the command shows the current number of shards. With --subscriptions and --rate it estimates the \
required number, without a table.

The number can be increased while the system runs, but never decreased: the runs process exactly the shards in the \
settings. New subscriptions go to the new shards; `dueday reshard` moves existing ones.

Examples:
  dueday shards
  dueday shards --subscriptions 10000000 --peak-day 0.2 --rate 1000
  dueday shards set 16 --table TABLE"
)]
pub struct ShardsArgs {
    #[command(subcommand)]
    pub action: Option<ShardsAction>,
    /// The total number of subscriptions
    #[arg(long, value_name = "N", requires = "rate")]
    pub subscriptions: Option<u64>,
    /// The share of subscriptions that are due on the busiest day
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = parse_busiest_day_share)]
    pub peak_day: f64,
    /// The largest number of payments per second that the gateway allows
    #[arg(long, value_name = "N", requires = "subscriptions")]
    #[arg(value_parser = |text: &str| parse_number_in_range::<u32>(text, 1..=1_000_000))]
    pub rate: Option<u32>,
    /// The number of subscriptions that are imported per second at the same time
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = |text: &str| parse_number_in_range::<u32>(text, 0..=1_000_000))]
    pub imports: u32,
    /// The size of an index entry in bytes
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = |text: &str| parse_number_in_range::<u32>(text, 1..=400_000))]
    pub row_bytes: u32,
}

#[derive(Debug, Subcommand)]
pub enum ShardsAction {
    /// Increase the number of shards
    Set {
        /// The new number
        #[arg(value_name = "N", value_parser = |text: &str| parse_number_in_range::<u32>(text, 1..=MAX_SHARDS))]
        shards: u32,
        #[command(flatten)]
        confirmation: ConfirmationArgs,
    },
}

/// The number of shards, as printed with `--json`.
#[derive(Serialize)]
struct ShardCountView {
    shards: u32,
}

/// The estimated number of shards that each kind of work requires, and the recommended number in `shards`.
#[derive(Serialize)]
struct ShardEstimate {
    due_on_the_busiest_day: u64,
    /// The estimated time, in seconds, that charging all payments of the busiest day takes.
    seconds: u64,
    /// The number of shards that the reads of due rows require.
    for_reads: u32,
    for_payments: u32,
    for_imports: u32,
    shards: u32,
}

/// Runs `dueday shards`.
pub async fn run_shards_command(context: &CommandContext, args: &ShardsArgs) -> Result<Exit, Failure> {
    if let (Some(subscriptions), Some(rate)) = (args.subscriptions, args.rate) {
        return print_shard_estimate(context, args, subscriptions, rate);
    }
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let shards = match args.action {
        None => open_table.settings.shards,
        Some(ShardsAction::Set { shards, confirmation }) => {
            confirmation.confirm(&format!("Increase the number of shards to {shards}?"))?;
            let action = context.new_log_entry(ActionKind::SetShards, None);
            let now = open_table.table.raise_shard_count(shards, Some(&action)).await?;
            if now > shards {
                return Err(Failure::Refused(format!(
                    "there are {now} shards, and the number cannot be decreased: runs only process the shards in the \
                     settings, so subscriptions in the other shards would never be charged"
                )));
            }
            now
        }
    };
    let hint = context.command_line("reshard");
    context.print(&ShardCountView { shards }, || match args.action {
        None => format!("{}\n", format_count(shards.into(), "shard")),
        Some(_) => format!(
            "{}, used by the next runs; new subscriptions go to the new shards, and `{hint}` moves existing ones\n",
            format_count(shards.into(), "shard")
        ),
    })?;
    Ok(Exit::Done)
}

/// Prints the number of shards that `subscriptions` subscriptions and `rate` payments per second require.
fn print_shard_estimate(
    context: &CommandContext,
    args: &ShardsArgs,
    subscriptions: u64,
    rate: u32,
) -> Result<Exit, Failure> {
    let RequiredShards { reads, payments, imports } =
        PeakLoad { payments: rate, imports: args.imports, row_bytes: args.row_bytes }.required_shards();
    let shards = RequiredShards { reads, payments, imports }.recommended();
    let due = (subscriptions as f64 * args.peak_day).ceil() as u64;
    let seconds = due.div_ceil(rate.into());
    let estimate = ShardEstimate {
        due_on_the_busiest_day: due,
        seconds,
        for_reads: reads,
        for_payments: payments,
        for_imports: imports,
        shards,
    };
    context.print(&estimate, || {
        let units = args.row_bytes.div_ceil(4_096).max(1);
        let rows = [
            ["read due rows".to_owned(), format!("{rate}/s x {units} x 0.5 / 3,000"), reads.to_string()],
            ["move paid rows".to_owned(), format!("1.5 x 2 x {rate}/s / 1,000"), payments.to_string()],
            ["import".to_owned(), format!("1.5 x {}/s / 1,000", args.imports), imports.to_string()],
        ];
        format!(
            "{}\n{} of {} subscriptions are due on the busiest day: {} at {rate} payments per second.\nUse {shards} or more \
             shards; twice as many leave room to grow.\n",
            format_table(&COLUMNS, rows.map(Vec::from)),
            HumanCount(due),
            HumanCount(subscriptions),
            format_duration(seconds),
        )
    })?;
    Ok(Exit::Done)
}

/// Parses the share of subscriptions that are due on the busiest day: above 0, at most 1.
fn parse_busiest_day_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("must be a share above 0 and at most 1, such as 0.2, not {text:?}"))
}

/// Formats a time in seconds, such as `2 h 05 min`.
fn format_duration(seconds: u64) -> String {
    match (seconds / 3_600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes:02} min"),
    }
}
