//! `dueday status`: shows what the system has done yesterday and today, and what needs a person.

use api::{DeployedParts, QueueStateReader as _};
use clap::Args;
use days::{BatchDay, Concern, LatestAudit, LatestComparison, ProcessFacts, QueueState, SystemStatus};
use indicatif::HumanCount;
use serde::Serialize;

use crate::commands::set_up::doctor::queues::read_stack_queues;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::machine::queues::{LocalQueues, describe_messages, state_of_unpublished_changes};
use crate::terminal::output;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of batches by day.
const COLUMNS: [TableColumn; 4] = [
    TableColumn::unwrapped("day"),
    TableColumn::unwrapped("batch"),
    TableColumn::unwrapped("state"),
    TableColumn::text("complete shards"),
];

/// The arguments of `dueday status`.
#[derive(Debug, Args)]
#[command(after_help = "\
The command exits with 1 if something needs a person, or could not be read.

With --table, it reads the queues of the stack with this table with the AWS CLI, which must be installed.

Examples:
  dueday status
  dueday status --table TABLE --json")]
pub struct StatusArgs {
    /// The stack whose queues are shown [default: the stack with this table]
    #[arg(long, value_name = "NAME")]
    pub stack: Option<String>,
}

/// The output of the command.
#[derive(Debug, Serialize)]
struct StatusOutput {
    #[serde(flatten)]
    status: SystemStatus,
    /// The queues of the local system or of the stack; `None` if they could not be read.
    queues: Option<Vec<QueueState>>,
    /// What the deployment does not do, because it has only the core; empty if it has all parts.
    not_deployed: &'static [&'static str],
}

/// Runs `dueday status`.
pub async fn run_status_command(context: &CommandContext, args: &StatusArgs) -> Result<Exit, Failure> {
    let table = context.options.table();
    if table.is_none() && args.stack.is_some() {
        return Err(Failure::Refused("--stack needs --table with the name of the table".to_owned()));
    }
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let now = context.clock.now();
    let (parts, queues) = match table {
        Some(table) => read_stack_queues(table, args.stack.as_deref()).await?,
        None => {
            let unpublished = open_table.unpublished_changes(context)?;
            let unpublished = unpublished.map(|(count, since)| state_of_unpublished_changes(count, since, now));
            let local = LocalQueues::new(open_table.table.clone(), context.clock.clone(), &context.options);
            (DeployedParts::Full, Ok(local.read_queue_states().await.into_iter().chain(unpublished).collect()))
        }
    };
    let process = ProcessFacts { queues: queues.clone(), check_schedule: parts.check_schedule() };
    let status = SystemStatus::read(&open_table.table, &open_table.settings, process, now).await?;
    let queues = queues.ok();
    let output = StatusOutput { status, queues, not_deployed: parts.missing_parts() };
    context.print(&output, || status_text(&output))?;
    Ok(Exit::done_if(output.status.concerns.is_empty()))
}

fn status_text(StatusOutput { status, queues, not_deployed }: &StatusOutput) -> String {
    let day = |day: &BatchDay| {
        let state = match day.state.is_complete() {
            true => output::green_text(&day.state.to_string()),
            false => day.state.to_string(),
        };
        vec![day.date.to_string(), day.batch.to_string(), state, format!("{} of {}", day.complete_shards, day.shards)]
    };
    let limits: Vec<String> = status.limits.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let charged = &status.charged_today;
    let sums = if charged.payments == 0 { String::new() } else { format!(" ({})", charged.sums) };
    let more = if charged.may_be_more { ", or more: a run has not recorded its end" } else { "" };
    let queue = |queue: &QueueState| format!("{} {}", queue.name, describe_messages(queue));
    let queues = queues.as_ref().map(|queues| queues.iter().map(queue).collect::<Vec<_>>().join(", "));
    let queues = match queues {
        Some(names) if names.is_empty() => "none".to_owned(),
        queues => queues.unwrap_or_else(|| "could not be read".to_owned()),
    };
    let mut lines = vec![
        ("charging", if status.charging { "on".to_owned() } else { "off".to_owned() }),
        ("limits", limits.join(", ")),
        ("charged today", format!("{}{sums}{more}", HumanCount(charged.payments))),
        ("oldest due payment", status.oldest_due_on.map_or("none".to_owned(), |date| date.to_string())),
        ("payments without receipt", status.open_findings.to_string()),
        ("latest comparison", status.latest_comparison.as_ref().map_or("none".to_owned(), describe_comparison)),
        ("latest audit", status.latest_audit.as_ref().map_or("none in 90 days".to_owned(), describe_audit)),
        ("queues", queues),
    ];
    if !not_deployed.is_empty() {
        lines.push(("not deployed (core only)", not_deployed.join("; ")));
    }
    let lines: String = lines.iter().map(|(name, value)| format!("{name:24}  {value}\n")).collect();
    let concern =
        |concern: &Concern| format!("{}\n  {}\n", output::red_text(&concern.to_string()), concern.next_step());
    let concerns = match status.concerns.as_slice() {
        [] => "Nothing needs a person.\n".to_owned(),
        concerns => concerns.iter().map(concern).collect(),
    };
    format!("{}\n\n{lines}\n{concerns}", format_table(&COLUMNS, status.days.iter().map(day)).trim_end())
}

/// Describes the latest comparison of a day with the gateway.
fn describe_comparison(compared: &LatestComparison) -> String {
    let date = compared.date;
    match compared.ended_at {
        Some(_) if compared.has_missing_lists => {
            format!("{date}, differences: {}; the gateway does not offer all lists", compared.differences)
        }
        Some(_) => format!("{date}, differences: {}", compared.differences),
        None => format!("{date}, not ended, differences so far: {}", compared.differences),
    }
}

/// Describes the latest audit.
fn describe_audit(audit: &LatestAudit) -> String {
    let date = audit.started_at.date_naive();
    match audit.ended_at {
        Some(_) => format!("{date}, violations: {}", audit.violations),
        None => format!("{date}, not ended, violations so far: {}", audit.violations),
    }
}
