//! `dueday subscriptions`: shows an account's subscriptions, or the first subscriptions of the table.

use api::SubscriptionView;
use billing::{AccountId, Subscription};
use clap::Args;

use super::listed_items::{LimitArgs, ListedItems, account_not_found};
use crate::context::Context;
use crate::machine::data::FolderPolicy;
use crate::machine::open_table::OpenTable;
use crate::terminal::output;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 8] = [
    Column::whole("subscription"),
    Column::text("account"),
    Column::text("product"),
    Column::whole("status"),
    Column::number("amount"),
    Column::whole(""),
    Column::extra("due date"),
    Column::extra("next payment"),
];

/// The arguments of `dueday subscriptions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday subscriptions acme\n  dueday subscriptions acme --json")]
pub struct SubscriptionsArgs {
    /// The account's id [default: all accounts]
    pub account: Option<AccountId>,
    #[command(flatten)]
    pub limit: LimitArgs,
}

pub async fn subscriptions(context: &Context, args: &SubscriptionsArgs) -> Result<Exit, Failure> {
    let OpenTable { table, .. } = &OpenTable::open(context, FolderPolicy::MustExist).await?;
    let mut list = ListedItems::new();
    match &args.account {
        Some(account) => {
            list = table.get_subscriptions_by_account(account, &args.limit.paging()).await?.into();
            if list.is_empty() && table.get_account(account).await?.is_none() {
                return Err(account_not_found(account));
            }
        }
        None => table.scan_subscriptions(|subscription| list.push(subscription, args.limit)).await?,
    }
    list.print::<SubscriptionView>(context, "subscription", &COLUMNS, row)
}

/// Formats one subscription as a table.
pub fn subscription_table(subscription: &Subscription) -> String {
    table(&COLUMNS, [row(subscription)])
}

fn row(s: &Subscription) -> Vec<String> {
    let ending = s.cancels_on().map(|on| format!("cancelled on {on}"));
    let next = s.next_payment_on.map(|on| on.to_string());
    vec![
        s.id.to_string(),
        s.account.to_string(),
        s.product_name.as_str().to_owned(),
        output::colored_status(&s.status.to_string()),
        s.price.decimal(),
        s.price.currency().to_string(),
        s.due_on.to_string(),
        ending.or(next).unwrap_or_default(),
    ]
}
