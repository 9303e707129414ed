//! `dueday accounts`: shows one account, or the first accounts of the table.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use api::AccountView;
use billing::{Account, AccountId, EmailAddress, ExternalId, Subscription};
use clap::Args;
use futures::{StreamExt as _, future, stream};
use serde_json::Value;
use store::{Table, TableError};

use crate::commands::list_output::{LimitArgs, ListOutput, account_not_found, start_search_progress};
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::table::{self, TableColumn};
use crate::{Exit, Failure};

/// The columns of the table of accounts.
const COLUMNS: [TableColumn; 6] = [
    TableColumn::unwrapped("account"),
    TableColumn::text("name"),
    TableColumn::unwrapped("e-mail"),
    TableColumn::unwrapped("locale"),
    TableColumn::unwrapped("mail"),
    TableColumn::unwrapped("since"),
];

/// The arguments of `dueday accounts`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dueday accounts acme
  dueday accounts --email billing@acme.example.com
  dueday accounts --external-id 4711
  dueday accounts --json --table TABLE")]
pub struct AccountsArgs {
    /// The account's id [default: all accounts]
    pub account: Option<AccountId>,
    /// Only accounts with this e-mail address, or with a subscription that has it; reads the whole table
    #[arg(long, value_name = "ADDRESS", conflicts_with = "account")]
    pub email: Option<EmailAddress>,
    /// Only the account whose subscription was imported with this external_id; reads the whole table
    #[arg(long, value_name = "ID", conflicts_with_all = ["account", "email"])]
    pub external_id: Option<ExternalId>,
    #[command(flatten)]
    pub limit: LimitArgs,
}

/// Runs `dueday accounts`.
pub async fn run_accounts_command(context: &CommandContext, args: &AccountsArgs) -> Result<Exit, Failure> {
    let OpenTable { table, .. } = &OpenTable::open(context, FolderRequirement::MustExist).await?;
    let mut list = ListOutput::new();
    match (&args.account, &args.external_id) {
        (None, Some(external_id)) => {
            let is_searched = |found: &Subscription| external_id.subscription_id(&found.account) == found.id;
            let (owners, unreadable) = find_owners(table, is_searched).await?;
            let errors = unreadable.into_iter().map(Err);
            let accounts = stream::iter(owners).then(async |id| table.get_account(&id).await.transpose());
            for account in errors.chain(accounts.filter_map(future::ready).collect::<Vec<_>>().await) {
                if list.push(account, args.limit).is_break() {
                    break;
                }
            }
        }
        (Some(id), _) => list.items.push(table.get_account(id).await?.ok_or_else(|| account_not_found(id))?),
        (None, None) => {
            // Compares without regard to case: mail servers deliver mails to addresses that differ only in case to the same
            // mailbox.
            let is_same =
                |searched: &EmailAddress, email: &EmailAddress| email.as_str().eq_ignore_ascii_case(searched.as_str());
            let mut owners = BTreeSet::new();
            if let Some(searched) = &args.email {
                let has_address = |found: &Subscription| found.email.as_ref().is_some_and(|own| is_same(searched, own));
                let (found, unreadable) = find_owners(table, has_address).await?;
                owners = found;
                for error in unreadable {
                    let _ = list.push(Err(error), args.limit);
                }
            }
            let progress = start_search_progress(args.email.is_some(), "accounts");
            let is_searched = |account: &Account| {
                let has_address = |searched: &EmailAddress| is_same(searched, &account.email);
                args.email.as_ref().is_none_or(has_address) || owners.contains(&account.id)
            };
            let each = |account| {
                progress.inc(1);
                list.push_if_selected(account, args.limit, is_searched)
            };
            table.scan_accounts(each).await?;
        }
    }
    list.print::<AccountView>(context, "account", &COLUMNS, account_row)
}

/// Returns the accounts that have a subscription for which `is_searched` returns true, and one error for each subscription
/// that cannot be read. Reads the whole table.
async fn find_owners(
    table: &Table,
    is_searched: impl Fn(&Subscription) -> bool,
) -> Result<(BTreeSet<AccountId>, Vec<TableError>), Failure> {
    let progress = start_search_progress(true, "subscriptions");
    let (mut owners, mut unreadable) = (BTreeSet::new(), Vec::new());
    let each = |subscription: Result<Subscription, TableError>| {
        progress.inc(1);
        match subscription {
            Ok(found) if is_searched(&found) => drop(owners.insert(found.account)),
            Ok(_) => {}
            Err(error) => unreadable.push(error),
        }
        ControlFlow::Continue(())
    };
    table.scan_subscriptions(each).await?;
    Ok((owners, unreadable))
}

/// Returns the table with one row for `account`.
pub fn account_table(account: &Account) -> String {
    table::format_table(&COLUMNS, [account_row(account)])
}

/// Returns the cells of the table row of `account`.
fn account_row(account: &Account) -> Vec<String> {
    let mail_status = match serde_json::to_value(account.mail_status) {
        Ok(Value::String(status)) => status,
        _ => String::new(),
    };
    vec![
        account.id.to_string(),
        account.name.as_str().to_owned(),
        account.email.as_str().to_owned(),
        account.locale.as_str().to_owned(),
        mail_status,
        account.created_at.format("%Y-%m-%d").to_string(),
    ]
}
