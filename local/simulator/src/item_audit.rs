//! Audits the items of a simulated table, like the command `dueday audit`. The audit must find nothing in items that
//! only Dueday has written.

use std::collections::{BTreeMap, HashMap};

use audit::{InvariantChecker, SubscriptionRepair};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use store::AccountPartition;

/// Returns the repairs that `checker` proposes for the subscriptions of `account`. `items` are the items of this
/// account.
pub fn repairs_of_items<'a>(
    mut checker: InvariantChecker,
    account: &str,
    items: impl Iterator<Item = &'a Value>,
) -> Vec<SubscriptionRepair> {
    // The number of shards grows during a simulation. `audit_items` reads it from the settings, and checks the shards.
    checker.shards = u32::MAX;
    let items = items.filter_map(|item| serde_json::from_value::<serde_dynamo::Item>(item.clone()).ok());
    checker.find_repairs(AccountPartition::from_items(format!("ACC#{account}"), items.map(Into::into)))
}

/// Returns a description of each violation that `checker` finds in `items`. If `items` contain the stored settings, the
/// number of shards is read from the settings. Violations of the invariant `Resolved` (open findings: successful
/// payments without a receipt that an operator must resolve) are left out, because no simulated operator resolves
/// findings.
pub fn audit_items<'a>(mut checker: InvariantChecker, items: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut partitions: BTreeMap<String, Vec<HashMap<String, AttributeValue>>> = BTreeMap::new();
    for item in items {
        if item["PK"]["S"] == "CTL#settings"
            && let Some(shards) = item["Shards"]["N"].as_str().and_then(|shards| shards.parse().ok())
        {
            checker.shards = shards;
        }
        // DynamoDB would have deleted an expired item. The engine of the simulation does not delete expired items, so
        // the audit skips them.
        let expires = item["TTL"]["N"].as_str().and_then(|ttl| ttl.parse::<i64>().ok());
        if expires.is_some_and(|expires| expires < checker.now.timestamp()) {
            continue;
        }
        let Some(key) = item["PK"]["S"].as_str().filter(|key| key.starts_with("ACC#")) else { continue };
        match serde_json::from_value::<serde_dynamo::Item>(item.clone()) {
            Ok(item) => partitions.entry(key.to_owned()).or_default().push(item.into()),
            Err(error) => return vec![format!("an item of {key} cannot be read: {error}")],
        }
    }
    let partitions = partitions.into_iter().map(|(key, items)| AccountPartition::from_items(key, items));
    let violations = partitions.flat_map(|partition| checker.check_account(&partition));
    let unexpected = violations.filter(|found| found.invariant != audit::Invariant::Resolved);
    unexpected.map(|found| format!("audit: {} {}: {}", found.invariant, found.key, found.what)).collect()
}
