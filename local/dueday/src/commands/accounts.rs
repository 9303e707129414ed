//! `dueday accounts`: an account, or the first of all.

use api::AccountView;
use billing::{Account, AccountId};
use clap::Args;
use serde_json::Value;

use super::found::{Found, LimitArgs, no_account};
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::table::Column;
use crate::{Exit, Failure};

const COLUMNS: [Column; 6] = [
    Column::whole("account"),
    Column::text("name"),
    Column::text("e-mail"),
    Column::extra("locale"),
    Column::extra("mail"),
    Column::extra("since"),
];

/// `dueday accounts`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday accounts acme\n  dueday accounts --json --table dueday")]
pub struct AccountsArgs {
    /// The account; all if absent
    pub account: Option<AccountId>,
    #[command(flatten)]
    pub limit: LimitArgs,
}

pub async fn accounts(context: &Context, args: &AccountsArgs) -> Result<Exit, Failure> {
    let Opened { table, .. } = &Opened::open(context, Folder::Existing).await?;
    let mut found = Found::none();
    match &args.account {
        Some(id) => found.items.push(table.get_account(id).await?.ok_or_else(|| no_account(id))?),
        None => table.scan_accounts(|account| found.take(account, args.limit)).await?,
    }
    found.show::<AccountView>(context, "account", &COLUMNS, row)
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
