//! `dueday confirm-clock`: the operator confirms that this machine's clock is right, although a recorded run has a
//! later time.

use billing::ActionKind;
use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;
use store::Table;
use sweep::MAX_CLOCK_DIFFERENCE;

use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::format_count;
use crate::{Exit, Failure};

/// The largest number of days whose run records are deleted. A clock that was further ahead has planned no payments that a
/// run of these years would find.
const MAX_DAYS_AHEAD: u32 = 3_660;

/// The arguments of `dueday confirm-clock`.
#[derive(Debug, Args)]
#[command(after_help = "\
A run does not start if its clock is more than an hour behind the latest recorded run: one of the two clocks is wrong. \
If the clock of the recorded run was wrong, check its changes with `dueday audit`, and confirm with this command that \
this machine's clock is right. Then runs start again, on one machine and on AWS. The command deletes the run records of \
later days, which would otherwise count as done.

Examples:
  dueday confirm-clock
  dueday confirm-clock --table TABLE")]
pub struct ConfirmClockArgs {}

/// The output of the command with `--json`.
#[derive(Serialize)]
struct ConfirmClockOutput {
    now: DateTime<Utc>,
    latest_run_at: Option<DateTime<Utc>>,
    confirmed: bool,
}

/// Deletes the run records of the days from `now` to `latest`, when a clock was ahead. Returns their number.
async fn delete_future_run_records(table: &Table, now: DateTime<Utc>, latest: DateTime<Utc>) -> Result<u64, Failure> {
    let policy = table.policy();
    let (today, last) = (policy.date_at(now), policy.date_at(latest));
    let days = u32::try_from(last.signed_duration_since(today).num_days()).unwrap_or(0);
    Ok(table.delete_runs_after(today, days.min(MAX_DAYS_AHEAD)).await?)
}

/// Runs `dueday confirm-clock`.
pub async fn confirm_clock(context: &CommandContext, _: &ConfirmClockArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let now = context.clock.now();
    let table_time = open_table.table.server_time().await?;
    if let Some(table_time) = table_time.filter(|table_time| (now - *table_time).abs() > MAX_CLOCK_DIFFERENCE) {
        let reason = format!("this machine's clock shows {now}, but the table's clock shows {table_time}");
        return Err(Failure::Refused(reason));
    }
    let latest_run_at = open_table.settings.latest_run_at;
    let later = latest_run_at.filter(|latest| *latest > now);
    let mut deleted = 0;
    if let Some(latest) = later {
        let action = context.new_log_entry(ActionKind::ConfirmClock, None);
        // Delete first: after a failure between the two steps, the command can be repeated.
        deleted = delete_future_run_records(&open_table.table, now, latest).await?;
        open_table.table.confirm_clock(now, latest, Some(&action)).await?;
    }
    let text = match (later, latest_run_at) {
        (Some(latest), _) => {
            let deleted = match deleted {
                0 => String::new(),
                deleted => format!(
                    "deleted, because they prove nothing: {} of later days\n",
                    format_count(deleted, "run record")
                ),
            };
            format!("confirmed: the time is {now}, although a run was recorded at the later time {latest}\n{deleted}")
        }
        (None, Some(latest)) => {
            format!("there is nothing to confirm: the time is {now}, and the latest run was at {latest}\n")
        }
        (None, None) => format!("there is nothing to confirm: the time is {now}, and no run is recorded\n"),
    };
    context.print(&ConfirmClockOutput { now, latest_run_at, confirmed: later.is_some() }, || text)?;
    Ok(Exit::Done)
}
