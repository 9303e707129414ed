//! `dueday receipt resend`: the mail of a receipt, once more.

use billing::{AccountId, ReceiptId};
use clap::{Args, Subcommand};
use delivery::Notices;

use crate::context::Context;
use crate::machine::data::{Folder, mailer};
use crate::machine::opened::Opened;
use crate::terminal::output;
use crate::{Exit, Failure};

/// `dueday receipt`.
#[derive(Debug, Args)]
pub struct ReceiptArgs {
    #[command(subcommand)]
    command: ReceiptCommand,
}

#[derive(Debug, Subcommand)]
enum ReceiptCommand {
    /// Send a receipt's mail again
    Resend(ResendArgs),
}

/// `dueday receipt resend`.
#[derive(Debug, Args)]
#[command(after_help = "\
It goes to the address that the account, or the payment's subscription, has. With --table, DUEDAY_MAIL_URL in the environment says how \
mails leave.

Example:
  dueday receipt resend acme 2027-01-31.01JZXCVBNM0123456789ABCDEF.gold")]
struct ResendArgs {
    /// The account
    account: AccountId,
    /// The receipt's id
    receipt: ReceiptId,
}

pub async fn receipt(context: &Context, args: &ReceiptArgs) -> Result<Exit, Failure> {
    let ReceiptCommand::Resend(ResendArgs { account, receipt }) = &args.command;
    let opened = Opened::open(context, Folder::Existing).await?;
    let stored = opened.table.get_receipt(account, receipt, context.clock.now()).await?;
    let (Some(stored), Some(account)) = (stored, opened.table.get_account(account).await?) else {
        return Err(Failure::Refused("there is no such receipt, or it has expired".to_owned()));
    };
    let config = &context.config;
    let (merchant, clock) = (config.merchant.clone(), context.clock.clone());
    let notices = Notices::new(opened.table.clone(), mailer(context).await?, merchant, config.billing.zone, clock);
    notices.resend(&account, &stored).await?;
    output::tell(format!("The receipt {} was sent.", stored.number()));
    Ok(Exit::Done)
}
