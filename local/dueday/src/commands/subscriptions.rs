//! `dueday subscriptions`: an account's subscriptions, or the first of all.

use api::SubscriptionView;
use billing::{AccountId, Subscription};
use clap::Args;

use super::found::{Found, LimitArgs, no_account};
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
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

/// `dueday subscriptions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday subscriptions acme\n  dueday subscriptions acme --json")]
pub struct SubscriptionsArgs {
    /// The account; all if absent
    pub account: Option<AccountId>,
    #[command(flatten)]
    pub limit: LimitArgs,
}

pub async fn subscriptions(context: &Context, args: &SubscriptionsArgs) -> Result<Exit, Failure> {
    let Opened { table, .. } = &Opened::open(context, Folder::Existing).await?;
    let mut found = Found::none();
    match &args.account {
        Some(account) => {
            found = table.get_subscriptions_by_account(account, &args.limit.paging()).await?.into();
            if found.is_empty() && table.get_account(account).await?.is_none() {
                return Err(no_account(account));
            }
        }
        None => table.scan_subscriptions(|subscription| found.take(subscription, args.limit)).await?,
    }
    found.show::<SubscriptionView>(context, "subscription", &COLUMNS, row)
}

/// A table of one subscription.
pub fn table_of(subscription: &Subscription) -> String {
    table(&COLUMNS, [row(subscription)])
}

fn row(s: &Subscription) -> Vec<String> {
    let ending = s.cancels_on().map(|on| format!("cancelled on {on}"));
    let next = s.next_payment_on.map(|on| on.to_string());
    vec![
        s.id.to_string(),
        s.account.to_string(),
        s.product_name.as_str().to_owned(),
        output::status(&s.status.to_string()),
        s.price.decimal(),
        s.price.currency().to_string(),
        s.due_on.to_string(),
        ending.or(next).unwrap_or_default(),
    ]
}
