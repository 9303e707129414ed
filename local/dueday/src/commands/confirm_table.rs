//! `dueday confirm-table`: an operator confirms that a restored or copied table may be charged.

use billing::{ActionKind, DayReconciliation, GatewayList};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clap::Args;
use serde::Serialize;
use store::Settings;

use crate::context::Context;
use crate::machine::data::FolderPolicy;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::{Exit, Failure};

/// The arguments of `dueday confirm-table`.
#[derive(Debug, Args)]
#[command(after_help = "\
A table that was restored from a backup does not contain the payments that were made after the backup. The first run \
notices that DynamoDB has given the table another id, switches charging off, and does not start. Then compare with the \
gateway (`dueday reconcile`) each day from the latest run in the backup to the day on which the copy was noticed. The \
command refuses a table without these comparisons, and names the days. It leaves charging off.

Examples:
  dueday reconcile --from 2027-01-29 --to 2027-01-30 --table TABLE --gateway stripe
  dueday confirm-table --table TABLE")]
pub struct ConfirmTableArgs {
    #[command(flatten)]
    pub confirmation: ConfirmationArgs,
}

#[derive(Serialize)]
struct TableConfirmation {
    /// The id that DynamoDB gave to the original table, for which the settings were written.
    before: String,
    dynamodb_id: String,
    charging: bool,
}

/// Confirms that the table, which was restored or copied, may be charged.
///
/// # Errors
/// [`Failure::Refused`] if DynamoDB returns no id, if the table needs no confirmation, if a day since the latest run in
/// the backup was not compared with the gateway or has differences, or if another person confirms the table at the same
/// time.
pub async fn confirm_table(context: &Context, args: &ConfirmTableArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderPolicy::MustExist).await?;
    let (table, settings) = (&open_table.table, &open_table.settings);
    let Some(dynamodb_id) = table.dynamodb_id().await? else {
        return Err(Failure::Refused("DynamoDB returned no id of the table".to_owned()));
    };
    let Some(before) = settings.dynamodb_id.clone().filter(|before| *before != dynamodb_id) else {
        return Err(Failure::Refused("the table was not restored or copied: there is nothing to confirm".to_owned()));
    };
    let noticed_at = match settings.copy_noticed_at {
        Some(noticed_at) => noticed_at,
        None => {
            // No run has recorded in the settings that this table is a copy, so this command records it now.
            table.record_copy(context.clock.now()).await?;
            context.clock.now()
        }
    };
    let (first, last) = (first_day_to_compare(settings), noticed_at.date_naive());
    for day in first.iter_days().take_while(|day| *day <= last) {
        let compared = table.get_reconciliation(day).await?;
        if let Some(problem) = problem_of(compared.as_ref(), noticed_at) {
            let command = context.command_line(&format!("reconcile --from {first} --to {last}"));
            return Err(Failure::Refused(format!("{day} {problem}: run `{command}` first")));
        }
    }
    args.confirmation.confirm(&format!(
        "The settings were written for the table {before}. The payments from {first} to {last} agree with the gateway. May this \
         table ({dynamodb_id}) be charged, and does no other table of the same customers exist that is charged?"
    ))?;
    let action = context.action(ActionKind::ConfirmTable, None);
    if !table.confirm_copy(&before, &dynamodb_id, Some(&action)).await? {
        return Err(Failure::Refused("another person has confirmed the table at the same time".to_owned()));
    }
    let hint = context.command_line("charging on");
    context.print(&TableConfirmation { before, dynamodb_id, charging: false }, || {
        format!("confirmed. Charging is off: `{hint}` switches it on, and the next run charges what is due\n")
    })?;
    Ok(Exit::Done)
}

/// Returns the first day (in UTC) whose payments may be missing in a restored table: the day of the latest run in the
/// backup. Each run stores its time in the settings, except in a copy that is not confirmed. The day is computed from
/// an hour earlier, because the clocks of two machines may differ by up to an hour.
fn first_day_to_compare(settings: &Settings) -> NaiveDate {
    let latest_run_at = settings.latest_run_at.unwrap_or(settings.created_at());
    (latest_run_at - TimeDelta::hours(1)).date_naive()
}

/// Returns the reason why the comparison of a day does not prove that the table agrees with the gateway; `None` if the
/// comparison proves it. A comparison that began before `noticed_at` may have been restored with the backup, so it
/// proves nothing.
fn problem_of(compared: Option<&DayReconciliation>, noticed_at: DateTime<Utc>) -> Option<String> {
    let Some(compared) = compared.filter(|compared| compared.started_at >= noticed_at) else {
        return Some("was not compared with the gateway since the copy was noticed".to_owned());
    };
    if compared.ended_at.is_none() {
        return Some("was not compared to its end".to_owned());
    }
    if compared.report_only {
        return Some("was compared with --report-only".to_owned());
    }
    if compared.not_compared.contains(&GatewayList::Payments) {
        return Some("has no comparison of payments, because the gateway does not list them".to_owned());
    }
    let differences: u64 = compared.differences.values().sum();
    (differences > 0).then(|| {
        format!(
            "has differences ({differences}), each of which must be corrected or accepted (`dueday reconcile accept`)"
        )
    })
}
