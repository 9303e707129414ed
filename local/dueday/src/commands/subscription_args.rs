//! The arguments that name one subscription.

use billing::{AccountId, ExternalId, Subscription, SubscriptionId};
use clap::Args;
use store::{Paging, Table};

use crate::Failure;
use crate::commands::list_output::account_not_found;

/// The largest number of subscriptions that a message lists.
const MAX_LISTED_SUBSCRIPTIONS: usize = 10;

/// The arguments that name one subscription: its account, and the id or the external id of the subscription. The account
/// is enough if it has only one subscription.
#[derive(Debug, Args)]
pub struct SubscriptionSelector {
    /// The account's id
    pub account: AccountId,
    /// The subscription's id or external id [default: the account's only subscription]
    pub subscription: Option<ExternalId>,
}

impl SubscriptionSelector {
    /// Returns the named subscription.
    ///
    /// # Errors
    /// - [`Failure::Refused`] if there is no such account or subscription, or if no subscription is named and the account
    ///   has several of them; the message then lists them
    /// - [`Failure::Table`] if the table cannot be read, or a subscription that could be meant is unreadable
    pub async fn find_subscription(&self, table: &Table) -> Result<Subscription, Failure> {
        match &self.subscription {
            Some(name) => find_subscription(table, &self.account, name).await,
            None => find_only_subscription(table, &self.account).await,
        }
    }
}

/// Returns the subscription of `account` whose id or external id is `name`. An id takes precedence, because external ids
/// may have the same form.
///
/// # Errors
/// [`Failure::Refused`] if there is no such subscription; [`Failure::Table`] if the table cannot be read.
pub async fn find_subscription(table: &Table, account: &AccountId, name: &ExternalId) -> Result<Subscription, Failure> {
    let id: Option<SubscriptionId> = name.as_str().parse().ok();
    for id in id.into_iter().chain([name.subscription_id(account)]) {
        if let Some(found) = table.get_subscription(account, id).await? {
            return Ok(found);
        }
    }
    Err(Failure::Refused(format!("there is no subscription {name} in the account {account}")))
}

/// Returns the only subscription of `account`. Cancelled subscriptions count, too.
async fn find_only_subscription(table: &Table, account: &AccountId) -> Result<Subscription, Failure> {
    let page = table.get_subscriptions_by_account(account, &Paging::all()).await?.require_all_readable()?;
    match <[Subscription; 1]>::try_from(page.items) {
        Ok([only]) => Ok(only),
        Err(none) if none.is_empty() && table.get_account(account).await?.is_none() => Err(account_not_found(account)),
        Err(none) if none.is_empty() => Err(Failure::Refused(format!("the account {account} has no subscription"))),
        Err(several) => Err(Failure::Refused(several_subscriptions_text(account, &several))),
    }
}

/// Returns the message that asks the reader to name one of the `several` subscriptions of `account`.
fn several_subscriptions_text(account: &AccountId, several: &[Subscription]) -> String {
    let line = |subscription: &Subscription| {
        let Subscription { id, external_id, product_name, status, .. } = subscription;
        let external_id = external_id.as_ref().map(|id| format!(", external id {id}")).unwrap_or_default();
        let status = status.to_string().replace('_', " ");
        format!("\n  {id}  {}, {status}{external_id}", product_name.as_str())
    };
    let listed: String = several.iter().take(MAX_LISTED_SUBSCRIPTIONS).map(line).collect();
    let more = match several.len().saturating_sub(MAX_LISTED_SUBSCRIPTIONS) {
        0 => String::new(),
        more => format!("\n  and {more} more: `dueday subscriptions {account}`"),
    };
    format!("the account {account} has {} subscriptions; name one of them:{listed}{more}", several.len())
}
