//! Stripe's events about payments that succeeded: late, in no order, sometimes two about one payment, and each sent again until it is
//! received.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::played_gateway::Event;

/// No event is sent for the first time later than this.
const LATEST_HOURS: i64 = 70;
/// One of so many payments has a second event.
const TWO_ONE_IN: u32 = 8;

/// The events that are not received yet.
pub struct Events(Mutex<State>);

struct State {
    rng: ChaCha8Rng,
    created: u64,
    /// By when they are sent next.
    waiting: BTreeMap<(DateTime<Utc>, u64), Event>,
}

impl Events {
    /// No events. Equal seeds send them at equal times.
    pub fn new(seed: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self(Mutex::new(State { rng, created: 0, waiting: BTreeMap::new() }))
    }

    /// `payment` has succeeded.
    pub fn create(&self, payment: &str, now: DateTime<Utc>) {
        let mut state = self.state();
        let count = 1 + u32::from(state.rng.random_ratio(1, TWO_ONE_IN));
        for _ in 0..count {
            let seconds = match state.rng.random_range(0..4) {
                0..2 => state.rng.random_range(1..120),
                2 => state.rng.random_range(120..10 * 60 * 60),
                _ => state.rng.random_range(120..LATEST_HOURS * 60 * 60),
            };
            state.created += 1;
            let number = state.created;
            let event = Event { id: format!("evt_{number:06}"), payment: payment.to_owned() };
            state.waiting.insert((now + TimeDelta::seconds(seconds), number), event);
        }
    }

    /// When the next event is sent.
    pub fn next(&self) -> Option<DateTime<Utc>> {
        self.state().waiting.keys().next().map(|(at, _)| *at)
    }

    /// The events that are sent by `now`. Each will be sent again in some hours.
    pub fn send(&self, now: DateTime<Utc>) -> Vec<Event> {
        let mut state = self.state();
        let later = state.waiting.split_off(&(now + TimeDelta::seconds(1), 0));
        let due = std::mem::replace(&mut state.waiting, later);
        for ((_, number), event) in &due {
            let again = now + TimeDelta::minutes(state.rng.random_range(30..8 * 60));
            state.waiting.insert((again, *number), event.clone());
        }
        due.into_values().collect()
    }

    /// `event` was received, and is not sent again.
    pub fn received(&self, event: &Event) {
        self.state().waiting.retain(|_, waiting| waiting != event);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
