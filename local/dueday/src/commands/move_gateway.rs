//! `dueday move-gateway`: from now on another gateway takes the payments of a table.

use std::ops::ControlFlow;

use billing::{GatewayAccount, Subscription};
use clap::Args;
use serde::Serialize;
use store::TableError;

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::{Exit, Failure};

/// `dueday move-gateway`.
#[derive(Debug, Args)]
#[command(after_help = "\
A table belongs to one account at one gateway: what was paid at one is unknown to another, and would be charged again. The \
table is moved to the one that --gateway names, or to this machine's sandbox. Charging must be off, and no payment open.

Examples:
  dueday move-gateway --gateway http://127.0.0.1:7879
  dueday move-gateway --table dueday --gateway https://gateway.example.com")]
pub struct MoveGatewayArgs {}

#[derive(Serialize)]
struct Moved {
    before: Option<GatewayAccount>,
    gateway: GatewayAccount,
}

pub async fn move_gateway(context: &Context, _: &MoveGatewayArgs) -> Result<Exit, Failure> {
    let opened = Opened::open(context, Folder::Existing).await?;
    let gateway = opened.any_gateway_account(context).await?;
    let before = opened.settings.gateway.clone();
    if before.as_ref() != Some(&gateway) {
        if opened.settings.charging {
            let hint = context.hint("charging off");
            return Err(Failure::Refused(format!("charging is on: switch it off first ({hint}), and let runs end")));
        }
        refuse_if_open(&opened).await?;
        let named = opened.table.set_gateway(before.as_ref(), &gateway).await?;
        if named != gateway {
            return Err(Failure::Refused(format!("meanwhile it was moved to {named}")));
        }
    }
    let text = match &before {
        Some(before) if *before != gateway => format!("moved from {before} to {gateway}\n"),
        _ => format!("its payments are made at {gateway}\n"),
    };
    context.print(&Moved { before, gateway }, || text)?;
    Ok(Exit::Done)
}

/// That no attempt is open in the whole table: the new gateway would know nothing of it.
async fn refuse_if_open(opened: &Opened) -> Result<(), Failure> {
    let (mut open, mut first, mut unreadable) = (0_u64, None, None);
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
    opened.table.scan_subscriptions(each).await?;
    if let Some(error) = unreadable {
        return Err(error.into());
    }
    match first {
        Some(first) => Err(Failure::Refused(format!(
            "payments are open: {open}, such as {first}; let the runs settle them, or resolve them, first"
        ))),
        None => Ok(()),
    }
}
