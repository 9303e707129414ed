//! Changes stored subscriptions as a run with a clock that was ahead does, and repairs them as `dueday audit --fix`
//! does. The audit must find each change, and the oracle checks each repair with its own rules. Afterwards, the
//! simulation continues with the repaired subscription.

use audit::InvariantChecker;
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use clock::Clock as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::world::SimulatedWorld;
use crate::item_audit::repairs_of_items;
use crate::json::{read_date_attribute, read_instant_attribute, read_number_attribute, read_text_attribute};

/// On each day, a subscription of each account is changed with a probability of 1 divided by this number.
const CHANGE_ONE_IN: u32 = 400;
/// The number of days by which the clock was ahead.
const DAYS_AHEAD: u64 = 366;

/// The changes and repairs of one simulation.
pub struct ClockAhead {
    rng: ChaCha8Rng,
    /// The number of repaired subscriptions.
    pub repairs: u32,
}

impl ClockAhead {
    pub fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), repairs: 0 }
    }

    /// Changes and repairs one subscription of each account that is chosen at random on `day`. Adds a violation if the
    /// audit misses a change, proposes no repair, or still finds the change after the repair. Leaves out corrupted
    /// accounts.
    pub fn change_and_repair(&mut self, world: &SimulatedWorld, checker: InvariantChecker, day: NaiveDate) {
        let now = world.clock.now();
        let checker = InvariantChecker { today: world.day_of(now), now, ..checker };
        for account in world.history.account_ids() {
            if !self.rng.random_ratio(1, CHANGE_ONE_IN) || world.oracle().is_account_corrupted(&account) {
                continue;
            }
            let items = world.history.items_of_account(&account);
            let changed = items.iter().find_map(|item| Some((item, item_written_by_fast_clock(item)?)));
            let Some((stored, ahead)) = changed else { continue };
            if !world.history.audit_account(&account, checker).is_empty() {
                continue;
            }
            if let Err(violation) = repair_clock_damage(world, checker, &account, stored, &ahead) {
                world.oracle().violations.push(format!("{day}: {account}: {violation}"));
                return;
            }
            self.repairs += 1;
        }
    }
}

/// Writes the item `ahead` instead of `stored`, and repairs it.
///
/// # Errors
/// The violation, if the audit misses the change, proposes no repair of it, or still finds it after the repair, or if
/// the repair is wrong according to the oracle.
fn repair_clock_damage(
    world: &SimulatedWorld,
    checker: InvariantChecker,
    account: &str,
    stored: &Value,
    ahead: &Value,
) -> Result<(), String> {
    let table = &world.config.table.name;
    world.history.write_item(table, ahead)?;
    if world.history.audit_account(account, checker).is_empty() {
        return Err(format!("the audit misses a clock that was ahead: {ahead}"));
    }
    let repairs = repairs_of_items(checker, account, world.history.items_of_account(account).iter());
    let [repair] = repairs.as_slice() else {
        return Err(format!("the audit proposes {} repairs of {ahead}", repairs.len()));
    };
    let mut repaired = ahead.clone();
    set_text_attribute(&mut repaired, "NextPaymentDate", repair.repaired.next_payment_on.map(|on| on.to_string()));
    let attempt = repair.repaired.attempt.as_ref();
    set_text_attribute(&mut repaired, "AttemptAt", attempt.map(|attempt| format_stored_time(attempt.claimed_at)));
    set_text_attribute(&mut repaired, "AttemptLease", attempt.map(|attempt| format_stored_time(attempt.leased_until)));
    increment_item_version(&mut repaired);
    world.oracle().record_clock_repair(checker.now, checker.today, stored, &repaired)?;
    world.history.write_item(table, &repaired)?;
    match world.history.audit_account(account, checker).as_slice() {
        [] => Ok(()),
        left => Err(format!("the audit still finds violations after its repair: {left:?}")),
    }
}

/// Returns the item of a subscription as a run with a clock that was ahead leaves it: the lease of an open attempt, or
/// the next payment date, is too late by [`DAYS_AHEAD`]. Returns `None` for other items and for subscriptions that are
/// not charged.
fn item_written_by_fast_clock(item: &Value) -> Option<Value> {
    read_text_attribute(item, "SK")?.strip_prefix("SUB#")?;
    let mut ahead = item.clone();
    if item.get("AttemptNo").is_some() {
        for name in ["AttemptAt", "AttemptLease"] {
            let at = read_instant_attribute(item, name)? + TimeDelta::days(DAYS_AHEAD.cast_signed());
            set_text_attribute(&mut ahead, name, Some(format_stored_time(at)));
        }
    } else {
        matches!(read_text_attribute(item, "Status")?, "active" | "past_due").then_some(())?;
        let on = read_date_attribute(item, "NextPaymentDate")?.checked_add_days(Days::new(DAYS_AHEAD))?;
        set_text_attribute(&mut ahead, "NextPaymentDate", Some(on.to_string()));
    }
    increment_item_version(&mut ahead);
    Some(ahead)
}

/// Sets the text attribute `name` of `item`, or removes the attribute if `value` is `None`.
fn set_text_attribute(item: &mut Value, name: &str, value: Option<String>) {
    match (value, item.as_object_mut()) {
        (Some(value), Some(attributes)) => drop(attributes.insert(name.to_owned(), json!({"S": value}))),
        (None, Some(attributes)) => drop(attributes.remove(name)),
        (_, None) => {}
    }
}

/// Adds one to the version of `item`, as every write does.
fn increment_item_version(item: &mut Value) {
    let version = read_number_attribute::<u64>(item, "Version").unwrap_or_default() + 1;
    item["Version"] = json!({"N": version.to_string()});
}

/// Returns `at` as the table stores it.
fn format_stored_time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
