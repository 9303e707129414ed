//! Checks whether the payment gateway can charge the stored prices: a price may be older than the rules of the gateway,
//! or than the gateway.

use std::collections::BTreeSet;

use billing::{AmountRules, Subscription, SubscriptionStatus};
use store::{AccountPartition, SubscriptionKey};

use super::invariants::{AccountViolations, BrokenInvariant, Invariant};

/// Returns a violation for each price in `partition` that `rules`, the rules of the gateway, do not allow. Skips
/// cancelled subscriptions, which are never charged again.
pub fn check_prices(partition: &AccountPartition, rules: &AmountRules) -> Vec<BrokenInvariant> {
    let mut violations = AccountViolations::default();
    for subscription in partition.subscriptions.iter().filter(|s| s.status != SubscriptionStatus::Cancelled) {
        let Subscription { price, waiting_terms, .. } = subscription;
        let prices = std::iter::once(price).chain(waiting_terms.iter().map(|terms| &terms.price));
        let problems =
            prices.filter_map(|price| Some(format!("the price {price} {}", rules.check_amount(*price).err()?)));
        for what in problems.collect::<BTreeSet<_>>() {
            violations.add(Invariant::Chargeable, SubscriptionKey::from_subscription(subscription).key(), what);
        }
    }
    violations.broken
}
