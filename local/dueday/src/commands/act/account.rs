//! `dueday account`: changes an account, opens a web page on which its customer enters a card, or exports its data.

use api::{AccountExport, AccountView, ErasureView, ExportError, SetupView};
use billing::{AccountChanges, AccountId, ActionKind, EmailAddress, ExternalId, Label, Locale, Subscription};
use clap::{ArgGroup, Args, Subcommand};
use erasing::{Eraser, ErasureRequestError, request_erasure};
use gateway_objects::{PaymentMethodSetups, SetupError};
use orders_table::BucketCount;
use store::{ChangeAccountOutcome, ChangeRecords, Paging};

use crate::commands::find::accounts::account_table;
use crate::commands::list_output::account_not_found;
use crate::commands::subscription_args::find_subscription;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::output;
use crate::{Exit, Failure};

/// The arguments of `dueday account`.
#[derive(Debug, Args)]
pub struct AccountArgs {
    #[command(subcommand)]
    command: AccountCommand,
}

#[derive(Debug, Subcommand)]
enum AccountCommand {
    /// Change the e-mail address, the name or the locale of an account
    Change(ChangeAccountArgs),
    /// Open a web page on which the customer enters a card, and print its address
    CardLink(CardLinkArgs),
    /// Print everything that is stored about an account as one JSON document
    Export(ExportArgs),
    /// Erase the personal data of an account; nothing may be owed or in progress
    Erase(EraseAccountArgs),
}

/// The arguments of `dueday account erase`.
#[derive(Debug, Args)]
#[command(after_help = "\
Removes the account and its subscriptions, and the personal data in the records that are kept: receipts, refunds, disputes and \
attempts stay with the id of the account. It is refused while something is owed or in progress. Erasure cannot be undone, \
and no account can have the id again. docs/privacy.md says what must be erased in other systems.

If the command is interrupted, repeat it: it continues where it stopped. It exits with 1 if the erasure waits for something.

Example:
  dueday account erase acme --yes")]
struct EraseAccountArgs {
    /// The account's id
    account: AccountId,
    #[command(flatten)]
    confirmation: ConfirmationArgs,
    /// The name of the order desk's table on AWS; has no effect without --table
    #[arg(long, value_name = "NAME", default_value = "dueday-orders", env = "DUEDAY_ORDERS_TABLE")]
    orders_table: String,
}

/// The arguments of `dueday account export`.
#[derive(Debug, Args)]
#[command(after_help = "\
The document is the same as the response of GET /accounts/ACCOUNT/export, without its limits. Tokens of payment methods \
and customers are shortened. `dueday orders` shows the data of the order desk.

Example:
  dueday account export acme > acme.json")]
struct ExportArgs {
    /// The account's id
    account: AccountId,
}

/// The arguments of `dueday account change`.
#[derive(Debug, Args)]
#[command(after_help = "\
Values that are not given stay unchanged. A new e-mail address gets mails even if the former address refused them.

Example:
  dueday account change acme --email books@acme.example.com --locale de")]
#[command(group(ArgGroup::new("changes").required(true).multiple(true).args(["email", "name", "locale"])))]
#[group(skip)]
struct ChangeAccountArgs {
    /// The account's id
    account: AccountId,
    /// The new e-mail address
    #[arg(long, value_name = "ADDRESS")]
    email: Option<EmailAddress>,
    /// The new name of the customer, for mails and receipts
    #[arg(long, value_name = "NAME")]
    name: Option<Label>,
    /// The new language and region of mails and receipts, such as de-AT
    #[arg(long, value_name = "LOCALE")]
    locale: Option<Locale>,
}

/// The arguments of `dueday account card-link`.
#[derive(Debug, Args)]
#[command(after_help = "\
Send the address to the customer only: everyone who has it can enter a card. The page closes after a day. The \
subscriptions use the card as soon as it is entered, and the next run charges their owed payments.

With --table, also give --gateway with the deployed value, and --api with the URL of the API.

Example:
  dueday account card-link acme")]
struct CardLinkArgs {
    /// The account's id
    account: AccountId,
    /// The id or external id of a subscription that will use the card; can be repeated [default: all that are not
    /// cancelled]
    #[arg(long = "subscription", value_name = "ID")]
    subscriptions: Vec<ExternalId>,
    /// The URL of the API, to which the customer returns [default: the API of the running local system]
    #[arg(long, value_name = "URL", value_parser = parse_api_url)]
    api: Option<String>,
}

/// Parses the value of `--api`.
fn parse_api_url(text: &str) -> Result<String, String> {
    config::parse_displayable_url(text).map_err(|allowed| format!("must be {allowed}"))
}

/// Runs `dueday account`.
pub async fn run_account_command(context: &CommandContext, args: &AccountArgs) -> Result<Exit, Failure> {
    match &args.command {
        AccountCommand::Change(args) => change_account(context, args).await,
        AccountCommand::CardLink(args) => create_card_link(context, args).await,
        AccountCommand::Export(args) => export_account(context, args).await,
        AccountCommand::Erase(args) => erase_account(context, args).await,
    }
}

/// Requests the erasure of an account, and erases the data that can be erased now.
async fn erase_account(context: &CommandContext, args: &EraseAccountArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let (table, account) = (&open_table.table, &args.account);
    let orders = match open_table.order_desk(context, &args.orders_table, BucketCount::new(4)).await {
        Ok(desk) => Some(desk.table),
        Err(Failure::NoTable { .. }) => None,
        Err(failure) => return Err(failure),
    };
    args.confirmation.confirm(&format!("Erase the personal data of the account {account}?"))?;
    let refused = |error: ErasureRequestError| match error {
        ErasureRequestError::Table(error) => Failure::from(error),
        ErasureRequestError::NoAccount => account_not_found(account),
        error => Failure::Refused(error.to_string()),
    };
    let action = context.new_log_entry(ActionKind::EraseAccount, None);
    request_erasure(table, account, &action, context.clock.now()).await.map_err(refused)?;
    let waits_for = Eraser::new(table.clone(), orders, context.clock.clone()).erase_account(account).await?;
    // The records of the stream contain the erased items until they are published.
    open_table.publish_all_changes(context).await?;
    open_table.remove_deleted_data()?;
    let state = request_erasure(table, account, &action, context.clock.now()).await.map_err(refused)?;
    let text = match &waits_for {
        Some(waits_for) => format!("The erasure of {account} waits: {waits_for}. Repeat the command later.\n"),
        None => format!("The account {account} is erased.\n"),
    };
    context.print(&ErasureView::new(account.clone(), state), || text)?;
    Ok(Exit::done_if(waits_for.is_none()))
}

/// Prints all data of an account as one JSON document.
async fn export_account(context: &CommandContext, ExportArgs { account }: &ExportArgs) -> Result<Exit, Failure> {
    let OpenTable { table, .. } = &OpenTable::open(context, FolderRequirement::MustExist).await?;
    let export = match AccountExport::read(table, account, usize::MAX, context.clock.now()).await {
        Ok(export) => export.ok_or_else(|| account_not_found(account))?,
        Err(ExportError::Table(error)) => return Err(error.into()),
        Err(ExportError::TooManyItems) => return Err(Failure::Refused("the account has too many items".to_owned())),
    };
    let text = serde_json::to_string_pretty(&export).unwrap_or_default();
    context.print(&export, || text + "\n")?;
    Ok(Exit::Done)
}

/// Changes the e-mail address, the name or the locale of an account.
async fn change_account(context: &CommandContext, args: &ChangeAccountArgs) -> Result<Exit, Failure> {
    let ChangeAccountArgs { account: id, email, name, locale } = args;
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let changes =
        AccountChanges { email: email.clone(), name: name.clone(), locale: locale.clone(), mail_status: None };
    let action = context.new_log_entry(ActionKind::PutAccount, None);
    let changed = match open_table.table.change_account(id, &changes, Some(&action)).await? {
        ChangeAccountOutcome::Changed(changed) => changed,
        ChangeAccountOutcome::Missing => return Err(account_not_found(id)),
        ChangeAccountOutcome::BeingErased => {
            return Err(Failure::Refused(format!("the account {id} is being erased, and can no longer be changed")));
        }
    };
    let text = account_table(&changed);
    context.print(&AccountView::from(changed), || text)?;
    if let Some(email) = email {
        let stored = open_table.table.get_subscriptions_by_account(id, &Paging::all()).await?.items;
        for Subscription { id, product_name, email: own, .. } in stored {
            if let Some(own) = own.filter(|own| own != email) {
                output::print_message(format!(
                    "The mails about {} ({id}) still go to {}. `dueday subscription change {} {id} --account-email` changes that.",
                    product_name.as_str(),
                    own.as_str(),
                    args.account,
                ));
            }
        }
    }
    Ok(Exit::Done)
}

/// Opens a web page on which the customer enters a card, and prints the URL of the page.
async fn create_card_link(context: &CommandContext, args: &CardLinkArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let api = args.api.clone().or_else(|| open_table.running_api_url());
    let api = api.ok_or_else(|| {
        let reason = match context.options.table() {
            Some(_) => "with --table, also give --api with the URL of the API, to which the customer returns",
            None => "the local system does not run; start `dueday` in another terminal, and repeat this command",
        };
        Failure::Refused(reason.to_owned())
    })?;
    let account = open_table.table.get_account(&args.account).await?.ok_or_else(|| account_not_found(&args.account))?;
    let (table, pages) = (open_table.table.clone(), open_table.gateway(context).await?);
    let setups = PaymentMethodSetups::new(table, pages, context.clock.clone());
    let mut named = Vec::new();
    for name in &args.subscriptions {
        named.push(find_subscription(&open_table.table, &account.id, name).await?.id);
    }
    let subscriptions = (!named.is_empty()).then_some(named);
    let setup = setups
        .open(&account, subscriptions, |id| format!("{api}/payment-method-setups/{id}/return"))
        .await
        .map_err(|error| match error {
            SetupError::Table(error) => error.into(),
            error => Failure::Refused(error.to_string()),
        })?;
    let action = context.new_log_entry(ActionKind::CreateSetup, None);
    open_table.table.create_setup(&setup, ChangeRecords { request: None, action: Some(&action) }).await?;
    let text = format!("{}\nThe page closes on {}.\n", setup.url, setup.expires_at.format("%Y-%m-%d at %H:%M UTC"));
    context.print(&SetupView::new(setup, context.clock.now()), || text)?;
    Ok(Exit::Done)
}
