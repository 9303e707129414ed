//! `dueday confirm-table`: an operator confirms that a restored or copied table may be charged.

use billing::{ActionKind, Label};
use clap::Args;
use reconciling::{ConfirmationProblem, DaysToCompare};
use serde::Serialize;

use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
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

With --restored, the command switches charging off and names the days, as a run does that notices the backup.

A gateway of your own may not list the payments of a day. `dueday reconcile` then compares the payments of each customer \
in the backup. It cannot find the payments of customers who are not in the backup, because they signed up after it or \
because a new payment method belongs to another customer of the gateway. Look for such payments at the gateway, and then \
confirm the table with --without-lists and a reason.

Examples:
  dueday reconcile --from 2027-01-29 --to 2027-01-30 --table TABLE --gateway stripe
  dueday confirm-table --table TABLE
  dueday confirm-table --without-lists --because 'no new customer has paid since the backup' --table TABLE")]
pub struct ConfirmTableArgs {
    /// Confirm the table although its gateway does not list the payments of a day, so that only the customers in the
    /// backup were compared
    #[arg(long, requires = "because")]
    pub without_lists: bool,
    /// The reason for the decision with --without-lists; it is stored in the action log; do not write personal data into
    /// it
    #[arg(long, value_name = "REASON", requires = "without_lists")]
    pub because: Option<Label>,
    /// State that the table was restored from a backup, if nothing has noticed it: nothing is charged until the days
    /// since the backup were compared, and this command was run again without this option
    #[arg(long, conflicts_with_all = ["without_lists", "because"])]
    pub restored: bool,
    #[command(flatten)]
    pub confirmation: ConfirmationArgs,
}

/// The output of the command with `--json`.
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
/// [`Failure::Refused`] in these cases:
/// - DynamoDB returns no id of the table.
/// - The table needs no confirmation, because it was not restored or copied, and `args.restored` is false.
/// - A day since the latest run in the backup was not compared with the gateway, or has differences.
/// - The gateway does not list the payments of a day, and `args.without_lists` is false.
/// - The gateway lists the payments of each day, and `args.without_lists` is true.
/// - The user does not confirm the table.
/// - Another person confirms the table at the same time.
pub async fn confirm_copied_table(context: &CommandContext, args: &ConfirmTableArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let (table, settings) = (&open_table.table, &open_table.settings);
    let Some(dynamodb_id) = table.dynamodb_id().await? else {
        return Err(Failure::Refused("DynamoDB returned no id of the table".to_owned()));
    };
    let has_other_id = settings.dynamodb_id.as_ref().is_some_and(|before| *before != dynamodb_id);
    if !has_other_id && settings.copy_noticed_at.is_none() && !args.restored {
        return Err(Failure::Refused("the table was not restored or copied: there is nothing to confirm".to_owned()));
    }
    let before = match &settings.dynamodb_id {
        Some(before) => before.clone(),
        None => table.init_dynamodb_id(&dynamodb_id).await?,
    };
    let is_noticed = !has_other_id || settings.copy_noticed_in.as_ref() == Some(&dynamodb_id);
    let noticed_at = match settings.copy_noticed_at.filter(|_| is_noticed) {
        Some(noticed_at) => noticed_at,
        // No run has recorded in the settings that this table is a copy, so this command records it now. The settings may
        // contain the record of another copy, of which this table is a backup.
        None => {
            let now = context.clock.now();
            match has_other_id {
                true => table.record_copy_with_id(&dynamodb_id, now).await?,
                false => table.record_copy(now).await?,
            }
            now
        }
    };
    let days = DaysToCompare::of_table(settings, noticed_at);
    let DaysToCompare { first, last, .. } = days;
    if let Some(problem) = days.find_problem(table, args.without_lists).await? {
        let next_step = match problem {
            ConfirmationProblem::OnlyCustomersCompared(_) => {
                let decide = context.command_line("confirm-table --without-lists --because REASON");
                format!("look for the payments of other customers at the gateway, then run `{decide}`")
            }
            ConfirmationProblem::AllListed { .. } => {
                format!("run `{}`", context.command_line("confirm-table"))
            }
            _ => format!("run `{}` first", context.command_line(&format!("reconcile --from {first} --to {last}"))),
        };
        return Err(Failure::Refused(format!("{problem}: {next_step}")));
    }
    let whose = if args.without_lists { " of the customers in the backup" } else { "" };
    args.confirmation.confirm(&format!(
        "The settings were written for the table {before}. The payments{whose} from {first} to {last} agree with the gateway. May \
         this table ({dynamodb_id}) be charged, and does no other table of the same customers exist that is charged?"
    ))?;
    let action = context.new_log_entry(ActionKind::ConfirmTable, args.because.as_ref());
    if !table.confirm_copy(&before, &dynamodb_id, Some(&action)).await? {
        return Err(Failure::Refused("another person has confirmed the table at the same time".to_owned()));
    }
    let hint = context.command_line("charging on");
    context.print(&TableConfirmation { before, dynamodb_id, charging: false }, || {
        format!("confirmed. Charging is off: `{hint}` switches it on, and the next run charges what is due\n")
    })?;
    Ok(Exit::Done)
}
