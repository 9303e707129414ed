//! `dueday receipt resend`: sends the mail of a receipt again.

use billing::{AccountId, ReceiptReference};
use clap::{Args, Subcommand};
use delivery::{NoticeError, Notices};

use crate::context::Context;
use crate::machine::data::{FolderPolicy, mailer};
use crate::machine::open_table::OpenTable;
use crate::terminal::output;
use crate::{Exit, Failure};

/// The arguments of `dueday receipt`.
#[derive(Debug, Args)]
pub struct ReceiptArgs {
    #[command(subcommand)]
    command: ReceiptCommand,
}

#[derive(Debug, Subcommand)]
enum ReceiptCommand {
    /// Send the mail of a receipt again
    Resend(ResendArgs),
}

/// The arguments of `dueday receipt resend`.
#[derive(Debug, Args)]
#[command(after_help = "\
The mail goes to the address of the payment's subscription, or else to the address of the account. With --table, the \
environment variable DUEDAY_MAIL_URL must name the service that sends mails.

Example:
  dueday receipt resend acme 202701-7KQ29M-4T3XWA")]
struct ResendArgs {
    /// The account's id
    account: AccountId,
    /// The receipt's number or id
    receipt: ReceiptReference,
}

pub async fn receipt(context: &Context, args: &ReceiptArgs) -> Result<Exit, Failure> {
    let ReceiptCommand::Resend(ResendArgs { account, receipt }) = &args.command;
    let open_table = OpenTable::open(context, FolderPolicy::MustExist).await?;
    let stored = open_table.table.find_receipt(account, receipt, context.clock.now()).await?;
    let (Some(stored), Some(account)) = (stored, open_table.table.get_account(account).await?) else {
        return Err(Failure::Refused("there is no such receipt, or it has expired".to_owned()));
    };
    let config = &context.config;
    let (merchant, clock) = (config.merchant.clone(), context.clock.clone());
    let notices = Notices::new(open_table.table.clone(), mailer(context).await?, merchant, config.billing.zone, clock);
    notices.resend(&account, &stored).await.map_err(|error| match error {
        NoticeError::Table(error) => error.into(),
        error => Failure::Refused(format!("the receipt {} was not sent: {error}", stored.number())),
    })?;
    output::print_message(format!("The receipt {} was sent.", stored.number()));
    Ok(Exit::Done)
}
