//! Who does something next, and what.

use chrono::TimeDelta;
use clock::Clock as _;
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use serde_json::json;

use super::Play;
use super::day::act_of;
use crate::oracle::{Act, Agreement};
use crate::stored::{StoredStatus, Who};

impl Play {
    /// Whoever asks for something next, and what.
    pub(super) fn somebody(&self) -> Option<(Who, Act)> {
        let (oracle, mut rng) = (self.world.oracle(), self.world.rng.borrow_mut());
        let all: Vec<_> = oracle.agreements().filter(|a| a.status != StoredStatus::Cancelled).collect();
        let whose = if rng.random_ratio(1, 50) { oracle.agreements().last() } else { all.choose(&mut *rng).copied() }?;
        Some((whose.who.clone(), act_of(whose, &mut rng)))
    }

    /// An account, and what it subscribes to.
    pub(super) fn somebody_new(&mut self) -> Option<(String, serde_json::Value)> {
        self.created += 1;
        let (oracle, mut rng) = (self.world.oracle(), self.world.rng.borrow_mut());
        let all: Vec<_> = oracle.agreements().collect();
        let account = all.choose(&mut *rng)?.who.0.clone();
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

    /// Somebody whose payment is open for a day.
    pub(super) fn somebody_stuck(&self) -> Option<Who> {
        let now = self.world.clock.now();
        let (oracle, mut rng) = (self.world.oracle(), self.world.rng.borrow_mut());
        let is_stuck =
            |a: &&Agreement| a.open.as_ref().is_some_and(|open| open.claimed_at + TimeDelta::hours(20) < now);
        let stuck: Vec<_> = oracle.agreements().filter(is_stuck).collect();
        Some(stuck.choose(&mut *rng)?.who.clone())
    }
}
