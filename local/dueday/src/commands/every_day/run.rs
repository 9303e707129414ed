//! `dueday run`: runs the payment batch or the reminder batch once.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use charging::unresolved_findings;
use chrono::{NaiveDate, TimeDelta};
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use futures::FutureExt as _;
use indicatif::ProgressBar;
use store::Batch;
use sweep::{BatchRequest, RunMonitor};

use crate::commands::value_parsers::parse_date;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::local_machine::LocalMachine;
use crate::terminal::output;
use crate::terminal::progress::ProgressDisplay;
use crate::terminal::report::format_report;
use crate::{Exit, Failure};

/// The time after which a run that the operator started stops, even if rows are left.
const RUN_TIME_LIMIT: TimeDelta = TimeDelta::hours(12);

/// The time between two updates of the displayed counts.
const UPDATE_INTERVAL: Duration = Duration::from_millis(200);

/// The arguments of `dueday run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Ctrl-C ends the run after the rows that it has started. The next run continues with the others.

Examples:\n  dueday run reminders\n  dueday run payments --date 2027-01-31")]
pub struct RunArgs {
    /// The batch to run
    #[arg(value_parser = batch_parser())]
    pub batch: Batch,
    /// The date of the run; not in the future [default: today]
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub date: Option<NaiveDate>,
}

/// Returns the parser of the command line for the name of a batch.
pub fn batch_parser() -> impl clap::builder::TypedValueParser<Value = Batch> {
    PossibleValuesParser::new(Batch::ALL.map(<&str>::from)).try_map(|name| name.parse::<Batch>())
}

/// Waits until the future `run` (the run of a batch) ends, and shows its progress. After the first Ctrl-C, the run
/// processes no further rows and ends when the current rows are finished. A second Ctrl-C ends the process immediately.
async fn show_progress_during<T>(monitor: Arc<RunMonitor>, run: impl Future<Output = T>) -> T {
    let bar = ProgressBar::new_spinner();
    let _progress = ProgressDisplay::show(bar.clone(), "{spinner} {msg}, {elapsed}", ProgressBar::message);
    let mut run = pin!(run);
    let mut interrupted = pin!(tokio::signal::ctrl_c().fuse());
    let mut ticks = tokio::time::interval(UPDATE_INTERVAL);
    loop {
        tokio::select! {
            report = &mut run => return report,
            _ = &mut interrupted => {
                if monitor.is_end_requested() {
                    Exit::Interrupted.exit_process();
                }
                output::print_message("\nEnding the run: waiting for the rows in progress. Ctrl-C again ends at once.");
                monitor.end_run();
                interrupted.set(tokio::signal::ctrl_c().fuse());
            }
            _ = ticks.tick() => bar.set_message(monitor.counts().to_string()),
        }
    }
}

/// Runs `dueday run`.
pub async fn run_batch_command(context: &CommandContext, args: &RunArgs) -> Result<Exit, Failure> {
    context.require_local_table("run")?;
    let machine = LocalMachine::open(context, FolderRequirement::MayBeOlder, context.clock.clone()).await?;
    let deployment = &machine.deployment;
    let request = BatchRequest::for_date(args.date.unwrap_or_else(|| context.today(&deployment.table)));
    let deadline = context.clock.now() + RUN_TIME_LIMIT;
    let is_clean = match args.batch {
        Batch::Reminders => {
            let sweep = deployment.reminder_batch().await?;
            let report = show_progress_during(sweep.monitor(), sweep.run_in_parts(&request, deadline)).await?;
            context.print(&report, || format_report(&report))?;
            report.is_done()
        }
        Batch::Payments => {
            let sweep = deployment.payment_batch().await?;
            let report = show_progress_during(sweep.monitor(), sweep.run_in_parts(&request, deadline)).await?;
            context.print(&report, || format_report(&report))?;
            let unresolved = unresolved_findings(&deployment.table.get_open_findings().await?);
            unresolved.iter().for_each(output::print_message);
            report.is_done() && unresolved.is_none()
        }
    };
    machine.mention_unpublished_changes(context)?;
    Ok(Exit::done_if(is_clean))
}
