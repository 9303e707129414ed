//! The random choices of a simulation with faults: the subscription or the account for which a task is executed.

use chrono::TimeDelta;
use clock::Clock as _;
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use serde_json::json;

use super::FaultSimulation;
use super::day_planner::random_action;
use crate::oracle::{CustomerAction, ExpectedSubscription};
use crate::stored_items::{StoredStatus, SubscriptionName};

impl FaultSimulation {
    /// Chooses a subscription and an action for a customer request; `None` if there is no subscription. One of 50
    /// requests is for the last subscription by name, even if that subscription is cancelled. No other request is for a
    /// cancelled subscription.
    pub(super) fn random_customer_request(&self) -> Option<(SubscriptionName, CustomerAction)> {
        let (oracle, mut rng) = (self.world.oracle(), self.world.rng.borrow_mut());
        let all: Vec<_> = oracle.expected_subscriptions().filter(|a| a.status != StoredStatus::Cancelled).collect();
        let chosen = if rng.random_ratio(1, 50) {
            oracle.expected_subscriptions().last()
        } else {
            all.choose(&mut *rng).copied()
        }?;
        Some((chosen.name.clone(), random_action(chosen, &mut rng)))
    }

    /// Chooses an account, and returns its id with the body of a request that creates a subscription; `None` if there
    /// is no account.
    pub(super) fn random_account_and_new_subscription(&mut self) -> Option<(String, serde_json::Value)> {
        self.created += 1;
        let (oracle, mut rng) = (self.world.oracle(), self.world.rng.borrow_mut());
        let all: Vec<_> = oracle.expected_subscriptions().collect();
        let account = all.choose(&mut *rng)?.name.0.clone();
        let new = json!({
            "sku": format!("new-{}", self.created),
            "product_name": format!("New plan {}", self.created),
            "payment_day": rng.random_range(1..=31),
            "amount": rng.random_range(1..50) * 100,
            "currency": "EUR",
            "payment_method": {"customer": format!("cus_{account}"), "payment_method": "pm_card_visa"},
        });
        Some((account, new))
    }

    /// Chooses a subscription whose payment attempt has been open for more than 20 hours; `None` if no attempt has been
    /// open so long.
    pub(super) fn random_long_open_subscription(&self) -> Option<SubscriptionName> {
        let now = self.world.clock.now();
        let (oracle, mut rng) = (self.world.oracle(), self.world.rng.borrow_mut());
        let is_long_open = |a: &&ExpectedSubscription| {
            a.open.as_ref().is_some_and(|open| open.claimed_at + TimeDelta::hours(20) < now)
        };
        let long_open: Vec<_> = oracle.expected_subscriptions().filter(is_long_open).collect();
        Some(long_open.choose(&mut *rng)?.name.clone())
    }
}
