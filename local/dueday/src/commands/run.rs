//! `dueday run`: a batch, once.

use std::process::ExitCode;
use std::sync::Arc;

use chrono::TimeDelta;
use shared::clock::{Clock, SystemClock};
use shared::sweep::{BatchRequest, Report};
use shared::table::{Counts, RunCounts};

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
    let is_clean = match command.batch {
        Batch::Reminders => {
            let report = deployment.reminders().await?.run(&request, deadline).await?;
            show(settings, &report)?;
            report.complete && report.counts.failed == 0
        }
        Batch::Payments => {
            let report = deployment.payments().await?.run(&request, deadline).await?;
            show(settings, &report)?;
            report.complete && report.counts.failed == 0 && report.counts.rejected == 0
        }
    };
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(settings: &Settings, report: &Report<impl Counts>) -> Result<(), Failure> {
    if settings.json { output::json(report) } else { output::print(&text(report)) }
}

/// A report in words.
pub fn text(report: &Report<impl Counts>) -> String {
    let counts: RunCounts = report.counts.into();
    let mut text = format!("{} of {}: {counts}\n", report.batch, report.date);
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
