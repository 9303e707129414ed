//! `dueday receipt`: shows one receipt, or sends its mail again.

use api::ReceiptView;
use billing::{Account, Receipt, Subscription};
use clap::{Args, Subcommand};
use notices::{CustomerNotifier, NoticeError};

use crate::commands::act::receipt_args::ReceiptSelector;
use crate::commands::find::receipts::receipt_table;
use crate::commands::list_output::account_not_found;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::mailer::create_configured_mailer;
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
    /// Show a receipt
    Show(ShowReceiptArgs),
    /// Send the mail of a receipt again
    Resend(ResendReceiptArgs),
}

/// The arguments of `dueday receipt show`.
#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    after_help = "\
Example:
  dueday receipt show 202701-7KQ29M-4T3XWA"
)]
struct ShowReceiptArgs {
    #[command(flatten)]
    receipt: ReceiptSelector,
}

/// The arguments of `dueday receipt resend`.
#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    after_help = "\
The mail goes to the address of the payment's subscription, or else to the address of the account. With --table, the \
environment variable DUEDAY_MAIL_URL must name the service that sends mails.

Example:
  dueday receipt resend 202701-7KQ29M-4T3XWA"
)]
struct ResendReceiptArgs {
    #[command(flatten)]
    receipt: ReceiptSelector,
}

/// Runs `dueday receipt`.
pub async fn run_receipt_command(context: &CommandContext, args: &ReceiptArgs) -> Result<Exit, Failure> {
    match &args.command {
        ReceiptCommand::Show(ShowReceiptArgs { receipt }) => show_receipt(context, receipt).await,
        ReceiptCommand::Resend(ResendReceiptArgs { receipt }) => resend_receipt(context, receipt).await,
    }
}

/// Shows a receipt.
async fn show_receipt(context: &CommandContext, receipt: &ReceiptSelector) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let receipt = receipt.find_receipt(&open_table.table, context.clock.now()).await?;
    let customer = open_table.table.get_account(&receipt.account).await?;
    let subscription = open_table.table.get_subscription(&receipt.account, receipt.subscription).await?;
    let command = |rest: String| context.command_line(&rest);
    let (account, number) = (&receipt.account, receipt.number());
    let text = format!(
        "{}\nAccount:      {account}\n{}Subscription: {}\nReason:       {}\nRefund:       {}\n",
        receipt_table(&receipt, open_table.table.policy().zone),
        customer_text(customer.as_ref(), subscription.as_ref(), &receipt),
        receipt.subscription,
        command(format!("why {account} {} --date {}", receipt.subscription, receipt.due_on)),
        command(format!("refund {number}")),
    );
    context.print(&ReceiptView::from(receipt), || text)?;
    Ok(Exit::Done)
}

/// Returns lines with the name, the present e-mail address and the card of the customer who paid `receipt`, of whom
/// `subscription` is the subscription. A line is missing if its value is unknown: an erased account has no name, and some
/// gateways do not describe the card.
fn customer_text(customer: Option<&Account>, subscription: Option<&Subscription>, receipt: &Receipt) -> String {
    let name = customer.map(|customer| format!("Name:         {}\n", customer.name.as_str()));
    let own_email = subscription.map_or(receipt.email.as_ref(), |subscription| subscription.email.as_ref());
    let email = own_email.or(customer.map(|customer| &customer.email));
    let email = email.map(|email| format!("E-mail:       {}\n", email.as_str()));
    let card = receipt.card.as_ref().map(|card| format!("Card:         {}\n", card.label()));
    [name, email, card].into_iter().flatten().collect()
}

/// Sends the mail of a receipt again.
async fn resend_receipt(context: &CommandContext, receipt: &ReceiptSelector) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let stored = receipt.find_receipt(&open_table.table, context.clock.now()).await?;
    let account = open_table.table.get_account(&stored.account).await?;
    let account = account.ok_or_else(|| account_not_found(&stored.account))?;
    let config = &context.config;
    let (merchant, clock) = (config.merchant.clone(), context.clock.clone());
    let notices =
        CustomerNotifier::new(open_table.table.clone(), create_configured_mailer(context).await?, merchant, clock);
    notices.resend(&account, &stored).await.map_err(|error| match error {
        NoticeError::Table(error) => error.into(),
        error => Failure::Refused(format!("the receipt {} was not sent: {error}", stored.number())),
    })?;
    output::print_message(format!("The receipt {} was sent.", stored.number()));
    Ok(Exit::Done)
}
