//! `dueday reshard`: moves subscriptions to the shards where they belong.

use std::pin::pin;

use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use serde::Serialize;
use store::{Resharded, TableError};

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output::{self, count};
use crate::{Exit, Failure};

/// `dueday reshard`.
#[derive(Debug, Args)]
#[command(after_help = "\
After `dueday shards set`. It goes on beside running batches, may be interrupted at any time, and goes on where it is run \
again. What is due by tomorrow, or has a payment open, stays where it is; run it again on another day.

Exits with 0 when everything is in its place, 1 when something had to stay or cannot be read, 130 when interrupted.

Examples:
  dueday reshard
  dueday reshard --table dueday --time-zone Europe/Berlin --reminder-lead-days 7")]
pub struct ReshardArgs {}

#[derive(Default, Serialize)]
struct Moved {
    moved: u64,
    in_place: u64,
    stay: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

pub async fn reshard(context: &Context, _: &ReshardArgs) -> Result<Exit, Failure> {
    context.deployed_as_told()?;
    let opened = Opened::open(context, Folder::Existing).await?;
    tokio::spawn(async {
        // Each subscription is moved by one write: whatever is moved is moved.
        if tokio::signal::ctrl_c().await.is_ok() {
            output::tell("\ninterrupted; run it again to go on");
            Exit::Interrupted.now();
        }
    });
    let bar = ProgressBar::new(opened.table.item_count().await?);
    bar.set_style(ProgressStyle::with_template("{bar:30} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar()));
    let moved = each(context, &opened, &bar).await;
    bar.finish_and_clear();
    let moved = moved?;
    for error in &moved.unreadable {
        output::tell(error);
    }
    context.print(&moved, || {
        let Moved { moved, in_place, stay, .. } = moved;
        let later = if stay == 0 { "" } else { " (due by tomorrow, or under way: run it again later)" };
        format!("{} moved, {in_place} in place, {stay} stay{later}\n", count(moved, "subscription"))
    })?;
    Ok(Exit::of(moved.stay == 0 && moved.unreadable.is_empty()))
}

async fn each(context: &Context, opened: &Opened, bar: &ProgressBar) -> Result<Moved, Failure> {
    let (table, settings, today) = (&opened.table, &opened.settings, context.today());
    let concurrency = context.config.limits.concurrency;
    let resharded = table.all_subscriptions().map(|stored| async move {
        match stored {
            Ok(stored) => table.reshard(stored, settings, today).await.map(Ok),
            Err(error @ TableError::Unreadable { .. }) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    });
    let mut resharded = pin!(resharded.buffer_unordered(concurrency.max(1)));
    let mut all = Moved::default();
    while let Some(one) = resharded.try_next().await? {
        match one {
            Ok(Resharded::Moved) => all.moved += 1,
            Ok(Resharded::InPlace) => all.in_place += 1,
            Ok(Resharded::Stays) => all.stay += 1,
            Err(error) => all.unreadable.push(error),
        }
        bar.inc(1);
        bar.set_message(format!("{} moved", HumanCount(all.moved)));
    }
    Ok(all)
}
