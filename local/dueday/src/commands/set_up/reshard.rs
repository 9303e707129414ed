//! `dueday reshard`: moves subscriptions to their shards after the number of shards has changed.

use std::pin::pin;

use billing::ActionKind;
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use indicatif::{HumanCount, ProgressBar};
use serde::Serialize;
use store::{ReshardOutcome, TableError};

use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::{self, format_count};
use crate::terminal::progress::ProgressDisplay;
use crate::{Exit, Failure};

/// The arguments of `dueday reshard`.
#[derive(Debug, Args)]
#[command(after_help = "\
Run this command after `dueday shards set`. It may run at the same time as the batches, and may be interrupted at any \
time: run it again to continue. Subscriptions that are due by tomorrow or have an open payment are not moved; run the \
command again on another day.

The command exits with 0 if every subscription is in its shard, with 1 if some could not be moved or cannot be read, \
and with 130 if it was interrupted.

Examples:
  dueday reshard
  dueday reshard --table TABLE")]
pub struct ReshardArgs {}

/// The output of the command with `--json`.
#[derive(Default, Serialize)]
struct ReshardReport {
    moved: u64,
    /// The number of subscriptions that were already in their shard.
    in_place: u64,
    /// The number of subscriptions that were not moved, because they are due or have an open payment. A later `dueday
    /// reshard` moves them.
    stay: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

/// Runs `dueday reshard`.
pub async fn run_reshard_command(context: &CommandContext, _: &ReshardArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    tokio::spawn(async {
        // Each subscription is moved by a single write, so an interruption cannot leave a subscription without a shard
        // or in two shards.
        if tokio::signal::ctrl_c().await.is_ok() {
            output::print_message("\ninterrupted; run the command again to continue");
            Exit::Interrupted.exit_process();
        }
    });
    let (bar, template) = match open_table.table.item_count().await? {
        Some(items) if items > 0 => (ProgressBar::new(items), "{bar:30} {msg}"),
        _ => (ProgressBar::new_spinner(), "{spinner} {msg}"),
    };
    let progress = ProgressDisplay::show(bar, template, |bar| bar.message());
    let action = context.new_log_entry(ActionKind::Reshard, None);
    // The action log gets an entry without counts before the work, so that the log also contains an interrupted `dueday
    // reshard`.
    open_table.table.put_action(&action.on_job([])).await?;
    let report = reshard_all_subscriptions(context, &open_table, &progress).await;
    drop(progress);
    let report = report?;
    open_table.table.put_action(&action.on_job([("moved", report.moved), ("not_moved", report.stay)])).await?;
    for error in &report.unreadable {
        output::print_message(error);
    }
    context.print(&report, || {
        let ReshardReport { moved, in_place, stay, .. } = report;
        let later =
            if stay == 0 { "" } else { " (due by tomorrow, or with an open payment: run the command again later)" };
        format!("{} moved, {in_place} already in place, {stay} not moved{later}\n", format_count(moved, "subscription"))
    })?;
    Ok(Exit::done_if(report.stay == 0 && report.unreadable.is_empty()))
}

/// Moves each subscription to its shard, if the subscription can be moved now. Advances `bar` for each subscription.
async fn reshard_all_subscriptions(
    context: &CommandContext,
    open_table: &OpenTable,
    bar: &ProgressBar,
) -> Result<ReshardReport, Failure> {
    let table = &open_table.table;
    let settings = &open_table.settings;
    let today = context.today(&open_table.table);
    let concurrency = context.config.limits.concurrency;
    let resharded = table.all_subscriptions().map(|stored| async move {
        match stored {
            Ok(stored) => table.reshard_subscription(stored, settings, today).await.map(Ok),
            Err(error @ TableError::Unreadable { .. }) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    });
    let mut resharded = pin!(resharded.buffer_unordered(concurrency.max(1)));
    let mut report = ReshardReport::default();
    while let Some(outcome) = resharded.try_next().await? {
        match outcome {
            Ok(ReshardOutcome::Moved) => report.moved += 1,
            Ok(ReshardOutcome::AlreadyInPlace) => report.in_place += 1,
            Ok(ReshardOutcome::Postponed) => report.stay += 1,
            Err(error) => report.unreadable.push(error),
        }
        bar.inc(1);
        bar.set_message(format!("{} moved", HumanCount(report.moved)));
    }
    Ok(report)
}
