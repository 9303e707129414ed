//! `dueday confirm-table`: an operator confirms that a restored or copied table may be charged.

use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::machine::data::FolderPolicy;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::{Exit, Failure};

/// The arguments of `dueday confirm-table`.
#[derive(Debug, Args)]
#[command(after_help = "\
A table that was restored from a backup does not contain the payments that were made after the backup. The first run \
notices that DynamoDB has given the table another id, switches charging off, and does not start. Compare the table with \
the gateway first (docs/trouble.md, \"Restore a backup\"), and confirm then. The command leaves charging off.

Examples:
  dueday confirm-table --table TABLE")]
pub struct ConfirmTableArgs {
    #[command(flatten)]
    pub confirmation: ConfirmationArgs,
}

#[derive(Serialize)]
struct TableConfirmation {
    /// The id for which the settings were written; `None` if no run has stored one.
    before: Option<String>,
    dynamodb_id: String,
    charging: bool,
}

/// # Errors
/// [`Failure::Refused`] if DynamoDB returns no id, if the table needs no confirmation, or if another person confirms it
/// at the same time.
pub async fn confirm_table(context: &Context, args: &ConfirmTableArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderPolicy::MustExist).await?;
    let (table, settings) = (&open_table.table, &open_table.settings);
    let Some(dynamodb_id) = table.dynamodb_id().await? else {
        return Err(Failure::Refused("DynamoDB returned no id of the table".to_owned()));
    };
    let before = settings.dynamodb_id.clone();
    let Some(written_for) = before.as_ref().filter(|before| **before != dynamodb_id) else {
        return Err(Failure::Refused("the table was not restored or copied: there is nothing to confirm".to_owned()));
    };
    args.confirmation.confirm(&format!(
        "The settings were written for the table {written_for}. Have you compared the payments since the backup with the \
         gateway, and may this table ({dynamodb_id}) be charged?"
    ))?;
    if settings.charging {
        // No run has noticed the copy yet.
        table.set_charging(false).await?;
    }
    let stored = table.set_dynamodb_id(Some(written_for), &dynamodb_id).await?;
    if stored != dynamodb_id {
        return Err(Failure::Refused(format!("another person has confirmed the table {stored} at the same time")));
    }
    let hint = context.command_line("charging on");
    context.print(&TableConfirmation { before, dynamodb_id, charging: false }, || {
        format!("confirmed. Charging is off: `{hint}` switches it on, and the next run charges what is due\n")
    })?;
    Ok(Exit::Done)
}
