//! `dueday move-gateway`: changes the gateway at which the payments of a table are made.

use std::ops::ControlFlow;

use billing::{ActionKind, GatewayAccount, Subscription};
use clap::Args;
use serde::Serialize;
use store::TableError;

use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::{Exit, Failure};

/// The arguments of `dueday move-gateway`.
#[derive(Debug, Args)]
#[command(after_help = "\
The payments of a table are made at one account of one gateway: another gateway does not know these payments, and \
would charge the same periods again. The command moves the table to the gateway of --gateway, by default to the \
sandbox of this machine. Charging must be off, and no payment may be open.

Examples:
  dueday move-gateway --gateway http://127.0.0.1:7879
  dueday move-gateway --table TABLE --gateway https://gateway.example.com")]
pub struct MoveGatewayArgs {}

/// The output of the command with `--json`.
#[derive(Serialize)]
struct GatewayMove {
    /// The gateway account before the move; `None` if the table had none.
    before: Option<GatewayAccount>,
    gateway: GatewayAccount,
}

/// Runs `dueday move-gateway`.
pub async fn move_gateway(context: &CommandContext, _: &MoveGatewayArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let gateway = open_table.any_gateway_account(context).await?;
    let before = open_table.settings.gateway.clone();
    if before.as_ref() != Some(&gateway) {
        if open_table.settings.charging {
            let hint = context.command_line("charging off");
            let reason = format!("charging is on: switch it off first ({hint}), and wait until all runs have ended");
            return Err(Failure::Refused(reason));
        }
        refuse_open_payments(&open_table).await?;
        let action = context.new_log_entry(ActionKind::MoveGateway, None);
        let named = open_table.table.set_gateway(before.as_ref(), &gateway, Some(&action)).await?;
        if named != gateway {
            let reason = format!("a concurrent command moved the table to the gateway {named}");
            return Err(Failure::Refused(reason));
        }
    }
    let text = match &before {
        Some(before) if *before != gateway => format!("the table was moved from {before} to {gateway}\n"),
        _ => format!("the payments of the table are made at {gateway}\n"),
    };
    context.print(&GatewayMove { before, gateway }, || text)?;
    Ok(Exit::Done)
}

/// Checks that no payment attempt in the table is open: the new gateway could not look up the outcome of an attempt
/// that was charged at the old gateway.
async fn refuse_open_payments(open_table: &OpenTable) -> Result<(), Failure> {
    let mut open = 0_u64;
    let mut first = None;
    let mut unreadable = None;
    let each = |read: Result<Subscription, TableError>| {
        match read {
            Ok(subscription) if subscription.attempt.is_some() => {
                open += 1;
                first.get_or_insert(format!("{} {}", subscription.account, subscription.id));
            }
            Ok(_) => {}
            Err(error) => unreadable = Some(error),
        }
        if unreadable.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    open_table.table.scan_subscriptions(each).await?;
    if let Some(error) = unreadable {
        return Err(error.into());
    }
    match first {
        Some(first) => Err(Failure::Refused(format!(
            "the table has open payments ({open}), such as for {first}: let the runs settle them, or resolve them first"
        ))),
        None => Ok(()),
    }
}
