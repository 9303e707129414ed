//! Corrupts random attributes of stored items while a simulation runs, and audits the account after each corruption.

use std::collections::BTreeSet;

use audit::InvariantChecker;
use chrono::NaiveDate;
use clock::Clock as _;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::world::SimulatedWorld;
use crate::corruptions::{AttributeCorruption, corruptions_of_attribute, kind_of_account_item, reason_audit_may_miss};
use crate::json::read_number_attribute;

/// On each day, an item of each account that is not yet corrupted is corrupted with a probability of 1 divided by this
/// number.
const CORRUPTION_ONE_IN: u32 = 150;
/// The maximum number of corruptions that are tried for one account. The table refuses a corruption that gives an index
/// key a wrong type.
const MAX_TRIES: u32 = 20;

/// An item that was corrupted during a simulation, and the invariants that the audit of its account then reported as
/// violated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InjectedCorruption {
    pub day: NaiveDate,
    pub account: String,
    /// The kind of the item. For a subscription, also its status.
    pub kind: String,
    /// The name of the attribute, and the change.
    pub what: String,
    /// The invariants that the audit reported as violated. Empty only if `CORRUPTIONS_THE_AUDIT_MAY_MISS` contains the
    /// corrupted attribute.
    pub found: BTreeSet<String>,
}

/// Corrupts at most one item of each account, on a random day. A second corruption of an account could hide the first
/// corruption from the audit.
pub struct ItemCorrupter {
    rng: ChaCha8Rng,
    pub injected: Vec<InjectedCorruption>,
}

impl ItemCorrupter {
    pub fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), injected: Vec::new() }
    }

    /// Corrupts one item of each account that is chosen at random on `day`. Adds a violation if the audit reports an
    /// error before the corruption, or misses a corruption that the audit must find.
    pub fn corrupt_items(&mut self, world: &SimulatedWorld, checker: InvariantChecker, day: NaiveDate) {
        let now = world.clock.now();
        let checker = InvariantChecker { today: world.day_of(now), now, ..checker };
        for account in world.history.account_ids() {
            if world.oracle().is_account_corrupted(&account) || !self.rng.random_ratio(1, CORRUPTION_ONE_IN) {
                continue;
            }
            let before = world.history.audit_account(&account, checker);
            if !before.is_empty() {
                world.oracle().violations.push(format!(
                    "{day}: the audit reports violations of an account that was not corrupted: {before:?}"
                ));
                return;
            }
            let Some((kind, corruption)) = self.corrupt_item(world, &account) else { continue };
            world.oracle().record_corrupted_account(&account);
            let found: BTreeSet<String> = world
                .history
                .audit_account(&account, checker)
                .iter()
                .filter_map(|text| invariant_name_in_violation(text))
                .collect();
            let name = corruption.description.split(' ').next().unwrap_or_default();
            if found.is_empty() && reason_audit_may_miss(&kind, name).is_none() {
                let AttributeCorruption { description, item } = &corruption;
                world.oracle().violations.push(format!("{day}: the audit misses {kind}: {description}, now {item}"));
            }
            self.injected.push(InjectedCorruption { day, account, kind, what: corruption.description, found });
        }
    }

    /// Corrupts a random attribute of a random item of `account`. In two of three cases, the item is a subscription.
    /// Expired items are left out, because DynamoDB would have deleted them. Returns the kind of the item and the
    /// corruption; `None` if the table refused all tries.
    fn corrupt_item(&mut self, world: &SimulatedWorld, account: &str) -> Option<(String, AttributeCorruption)> {
        let now = world.clock.now().timestamp();
        for _ in 0..MAX_TRIES {
            let wants_subscription = self.rng.random_ratio(2, 3);
            let is_wanted = |item: &Value| {
                kind_of_account_item(item).is_some_and(|kind| kind.starts_with("SUB") == wants_subscription)
                    && read_number_attribute::<i64>(item, "TTL").is_none_or(|expires| expires >= now)
            };
            let items: Vec<Value> = world.history.items_of_account(account).into_iter().filter(is_wanted).collect();
            let Some(item) = items.choose(&mut self.rng) else { continue };
            let kind = kind_of_account_item(item)?;
            let names = item.as_object()?.keys().filter(|name| !["PK", "SK"].contains(&name.as_str()));
            let names: Vec<&String> = names.collect();
            let name = names.choose(&mut self.rng)?;
            let Some(corruption) = corruptions_of_attribute(item, name).choose(&mut self.rng).cloned() else {
                continue;
            };
            if world.history.write_corrupted_item(&world.config.table.name, &corruption.item) {
                return Some((kind, corruption));
            }
        }
        None
    }
}

/// Returns the name of the violated invariant from `violation`, the description of a violation by the audit.
fn invariant_name_in_violation(violation: &str) -> Option<String> {
    violation.split(' ').nth(1).map(str::to_owned)
}
