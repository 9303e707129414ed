//! `dueday run`: a batch, once.

use std::process::ExitCode;
use std::sync::Arc;

use chrono::TimeDelta;
use shared::clock::{Clock, SystemClock};
use shared::sweep::{BatchRequest, Report};
use shared::table::Counts;

use crate::Failure;
use crate::arguments::{Batch, Run, Settings};
use crate::machine::data::Machine;
use crate::terminal::output;

/// A run by hand is given this long.
const TIME_FOR_A_RUN: TimeDelta = TimeDelta::hours(12);

pub async fn run(settings: &Settings, command: &Run) -> Result<ExitCode, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let Machine { deployment, .. } = &Machine::open(settings, clock.clone()).await?;
    let today = clock.now().with_timezone(&deployment.config.zone).date_naive();
    let request = BatchRequest::on(command.date.unwrap_or(today));
    let deadline = clock.now() + TIME_FOR_A_RUN;
    let report = match command.batch {
        Batch::Reminders => deployment.reminders().await?.run(&request, deadline).await?,
        Batch::Payments => deployment.payments().await?.run(&request, deadline).await?,
    };
    if settings.json {
        output::json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    let is_clean = report.complete
        && report.counts.get("failed") == Some(&0)
        && report.counts.get("rejected").is_none_or(|r| *r == 0);
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A report in words.
pub fn text(report: &Report) -> String {
    let mut text = format!("{} of {}: {}\n", report.batch, report.date, in_words(&report.counts));
    for failure in &report.failures {
        text += &format!("  failed  {}: {}\n", failure.key, failure.reason);
    }
    if let Some(stopped) = &report.stopped {
        text += &format!("  stopped: {stopped}\n");
    }
    if !report.complete {
        text += "  the end was not reached: run it again\n";
    }
    text
}

/// Counts in words: those that are not zero, what was due first.
pub fn in_words(counts: &Counts) -> String {
    let mut named: Vec<_> = counts.iter().filter(|(name, count)| **count > 0 || *name == "due").collect();
    named.sort_by_key(|(name, _)| *name != "due");
    let named = named.into_iter().map(|(name, count)| format!("{count} {}", name.replace('_', " ")));
    named.collect::<Vec<_>>().join(", ")
}
