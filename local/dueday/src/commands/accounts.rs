//! `dueday accounts`: shows one account, or the first accounts of the table.

use api::AccountView;
use billing::{Account, AccountId, EmailAddress};
use clap::Args;
use serde_json::Value;

use super::listed_items::{LimitArgs, ListedItems, account_not_found, start_search};
use crate::context::Context;
use crate::machine::data::FolderPolicy;
use crate::machine::open_table::OpenTable;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 6] = [
    Column::whole("account"),
    Column::text("name"),
    Column::text("e-mail"),
    Column::extra("locale"),
    Column::extra("mail"),
    Column::extra("since"),
];

/// The arguments of `dueday accounts`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dueday accounts acme
  dueday accounts --email billing@acme.example.com
  dueday accounts --json --table dueday")]
pub struct AccountsArgs {
    /// The account's id [default: all accounts]
    pub account: Option<AccountId>,
    /// Only accounts with this e-mail address; reads the whole table
    #[arg(long, value_name = "ADDRESS", conflicts_with = "account")]
    pub email: Option<EmailAddress>,
    #[command(flatten)]
    pub limit: LimitArgs,
}

pub async fn accounts(context: &Context, args: &AccountsArgs) -> Result<Exit, Failure> {
    let OpenTable { table, .. } = &OpenTable::open(context, FolderPolicy::MustExist).await?;
    let mut list = ListedItems::new();
    match &args.account {
        Some(id) => list.items.push(table.get_account(id).await?.ok_or_else(|| account_not_found(id))?),
        None => {
            let progress = start_search(args.email.is_some(), "accounts");
            let is_searched = |account: &Account| {
                // Mail servers treat addresses that differ only in case as the same address.
                args.email.as_ref().is_none_or(|email| account.email.as_str().eq_ignore_ascii_case(email.as_str()))
            };
            let each = |account| {
                progress.inc(1);
                list.push_if(account, args.limit, is_searched)
            };
            table.scan_accounts(each).await?;
        }
    }
    list.print::<AccountView>(context, "account", &COLUMNS, row)
}

/// Returns the table with one row for `account`.
pub fn account_table(account: &Account) -> String {
    table(&COLUMNS, [row(account)])
}

fn row(account: &Account) -> Vec<String> {
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
