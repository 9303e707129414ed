//! The check of the items outside of the partitions of accounts, and the violations of faulty items of both tables.

use store::{CheckedItems, FaultyItem, ItemFault, NamedOwner, Table, TableError};

use super::{BrokenInvariant, Invariant};

/// Returns the violations in `checked`, items outside of the accounts: what is wrong with each of them, and the accounts
/// and subscriptions that they name but that do not exist, or the open finding that is not in its account. Sends one GetItem
/// request for each named account, one Query request for each named subscription, and one or two GetItem requests for each
/// named finding.
///
/// # Errors
/// [`TableError`] if a request fails.
pub async fn check_other_items(table: &Table, checked: CheckedItems) -> Result<Vec<BrokenInvariant>, TableError> {
    let mut broken: Vec<_> = checked.faulty.iter().map(BrokenInvariant::from).collect();
    for NamedOwner { key, account, subscriptions, finding } in checked.owners {
        if let Some(finding) = finding
            && table.has_lost_finding(&finding).await?
        {
            let what = "it lists an open finding that the account does not have: delete it by hand".to_owned();
            broken.push(BrokenInvariant { invariant: Invariant::Consistent, key: key.to_string(), what });
        }
        let mut add = |what: String| {
            broken.push(BrokenInvariant { invariant: Invariant::Owned, key: key.to_string(), what });
        };
        if !item_exists(table.get_stored_account(&account).await)? {
            add(format!("it names the account {account}, which does not exist"));
            continue;
        }
        for subscription in subscriptions {
            if !item_exists(table.get_subscription(&account, subscription).await)? {
                add(format!("it names the subscription {subscription} of {account}, which does not exist"));
            }
        }
    }
    Ok(broken)
}

/// Returns whether the item exists that was `read`. An item that cannot be read exists; it is a violation of its own
/// account.
fn item_exists<T>(read: Result<Option<T>, TableError>) -> Result<bool, TableError> {
    match read {
        Ok(item) => Ok(item.is_some()),
        Err(TableError::Unreadable { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

impl From<&FaultyItem> for BrokenInvariant {
    fn from(FaultyItem { key, fault, what }: &FaultyItem) -> Self {
        let invariant = match fault {
            ItemFault::Unreadable => Invariant::Readable,
            ItemFault::Altered => Invariant::Consistent,
            ItemFault::Expiry => Invariant::Expiring,
            ItemFault::Relation => Invariant::Related,
        };
        Self { invariant, key: key.to_string(), what: what.clone() }
    }
}
