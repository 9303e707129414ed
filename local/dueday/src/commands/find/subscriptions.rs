//! `dueday subscriptions`: shows an account's subscriptions, or the first subscriptions of the table.

use api::SubscriptionView;
use billing::{AccountId, ExternalId, Subscription, SubscriptionStatus, WaitingChange};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use store::Paging;

use crate::commands::list_output::{LimitArgs, ListOutput, account_not_found, start_search_progress};
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::output;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of subscriptions.
const COLUMNS: [TableColumn; 11] = [
    TableColumn::unwrapped("subscription"),
    TableColumn::unwrapped("account"),
    TableColumn::text("product"),
    TableColumn::unwrapped("status"),
    TableColumn::number("amount"),
    TableColumn::unwrapped(""),
    TableColumn::unwrapped("due date"),
    TableColumn::unwrapped("next payment"),
    TableColumn::text("pending change"),
    TableColumn::unwrapped("external id"),
    TableColumn::unwrapped("own e-mail"),
];

/// The names of all statuses of a subscription.
const STATUSES: [&str; 5] = ["active", "past_due", "unpaid", "paused", "cancelled"];

/// Converts one of the [`STATUSES`] to a status.
fn parse_subscription_status(text: String) -> SubscriptionStatus {
    serde_json::from_value(text.into()).expect("clap accepts only the names in STATUSES, and a test reads each of them")
}

/// The arguments of `dueday subscriptions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dueday subscriptions acme
  dueday subscriptions acme --json
  dueday subscriptions --status past_due
  dueday subscriptions --external-id 4711")]
pub struct SubscriptionsArgs {
    /// The account's id [default: all accounts]
    pub account: Option<AccountId>,
    /// Only subscriptions with this status; without an account, reads the whole table
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(STATUSES).map(parse_subscription_status))]
    pub status: Option<SubscriptionStatus>,
    /// Only the subscription that was imported with this external_id; without an account, reads the whole table
    #[arg(long, value_name = "ID")]
    pub external_id: Option<ExternalId>,
    #[command(flatten)]
    pub limit: LimitArgs,
}

impl SubscriptionsArgs {
    /// Returns whether `subscription` has the requested status and external id.
    fn selects_subscription(&self, subscription: &Subscription) -> bool {
        let has_external_id = |id: &ExternalId| id.subscription_id(&subscription.account) == subscription.id;
        self.status.is_none_or(|status| status == subscription.status)
            && self.external_id.as_ref().is_none_or(has_external_id)
    }
}

/// Runs `dueday subscriptions`.
pub async fn run_subscriptions_command(context: &CommandContext, args: &SubscriptionsArgs) -> Result<Exit, Failure> {
    let OpenTable { table, .. } = &OpenTable::open(context, FolderRequirement::MustExist).await?;
    let mut list = ListOutput::new();
    let is_filtered = args.status.is_some() || args.external_id.is_some();
    match &args.account {
        Some(account) if is_filtered => {
            let stored = table.get_subscriptions_by_account(account, &Paging::all()).await?;
            if stored.is_empty() && table.get_account(account).await?.is_none() {
                return Err(account_not_found(account));
            }
            let stored = stored.items.into_iter().map(Ok).chain(stored.unreadable.into_iter().map(Err));
            for subscription in stored {
                if list
                    .push_if_selected(subscription, args.limit, |subscription| args.selects_subscription(subscription))
                    .is_break()
                {
                    break;
                }
            }
        }
        Some(account) => {
            list = table.get_subscriptions_by_account(account, &args.limit.paging()).await?.into();
            if list.is_empty() && table.get_account(account).await?.is_none() {
                return Err(account_not_found(account));
            }
        }
        None => {
            let progress = start_search_progress(is_filtered, "subscriptions");
            let each = |subscription| {
                progress.inc(1);
                list.push_if_selected(subscription, args.limit, |subscription| args.selects_subscription(subscription))
            };
            table.scan_subscriptions(each).await?;
        }
    }
    list.print::<SubscriptionView>(context, "subscription", &COLUMNS, subscription_row)
}

/// Formats one subscription as a table.
pub fn subscription_table(subscription: &Subscription) -> String {
    format_table(&COLUMNS, [subscription_row(subscription)])
}

/// Returns the cells of the table row of a subscription.
fn subscription_row(s: &Subscription) -> Vec<String> {
    let next = s.next_charge_on().map(|on| on.to_string());
    vec![
        s.id.to_string(),
        s.account.to_string(),
        s.product_name.as_str().to_owned(),
        output::colored_status(&s.status.to_string()),
        s.price.decimal(),
        s.price.currency().to_string(),
        s.due_on.to_string(),
        next.unwrap_or_default(),
        pending_changes_text(s),
        s.external_id.as_ref().map_or_else(String::new, ExternalId::to_string),
        s.email.as_ref().map(|email| email.as_str().to_owned()).unwrap_or_default(),
    ]
}

/// Returns the changed prices and payment days that apply from later months on, each with its first due date, and the
/// planned end. Empty if no change is pending.
fn pending_changes_text(s: &Subscription) -> String {
    let describe = |change: WaitingChange| {
        let price = change.price.map(|price| price.to_string());
        let day = change.payment_day.map(|day| format!("payment day {day}"));
        let changed: Vec<String> = price.into_iter().chain(day).collect();
        format!("{} from {}", changed.join(" and "), change.first_due_on)
    };
    let end = s.cancels_on().map(|on| format!("ends on {on}"));
    s.waiting_changes().into_iter().map(describe).chain(end).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subscription_status_can_be_parsed() {
        for name in STATUSES {
            assert_eq!(parse_subscription_status(name.to_owned()).to_string(), name);
        }
    }
}
