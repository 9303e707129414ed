//! Stripe's events about payments that succeeded. Events are sent late and in any order, some payments have two events,
//! and each event is sent again until Dueday has received it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::simulated_gateway::GatewayEvent;

/// The maximum delay before an event is sent for the first time.
const MAX_DELAY_HOURS: i64 = 70;
/// On average, one payment in this number of payments has a second event.
const DUPLICATE_ONE_IN: u32 = 8;

/// The events of Stripe that Dueday has not received yet.
pub struct EventQueue(Mutex<EventQueueState>);

/// The waiting events, and the random numbers for new events.
struct EventQueueState {
    rng: ChaCha8Rng,
    /// The number of events that were created so far.
    created: u64,
    /// The events, ordered by the instant at which they are sent next, and by their number.
    waiting: BTreeMap<(DateTime<Utc>, u64), GatewayEvent>,
}

impl EventQueue {
    /// Creates an empty queue. Equal seeds give equal delays.
    pub fn new(seed: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self(Mutex::new(EventQueueState { rng, created: 0, waiting: BTreeMap::new() }))
    }

    /// Adds the events about `payment`, which succeeded at `now`.
    pub fn create_events(&self, payment: &str, now: DateTime<Utc>) {
        let mut state = self.state();
        let count = 1 + u32::from(state.rng.random_ratio(1, DUPLICATE_ONE_IN));
        for _ in 0..count {
            let seconds = match state.rng.random_range(0..4) {
                0..2 => state.rng.random_range(1..120),
                2 => state.rng.random_range(120..10 * 60 * 60),
                _ => state.rng.random_range(120..MAX_DELAY_HOURS * 60 * 60),
            };
            state.created += 1;
            let number = state.created;
            let event = GatewayEvent { id: format!("evt_{number:06}"), payment: payment.to_owned() };
            state.waiting.insert((now + TimeDelta::seconds(seconds), number), event);
        }
    }

    /// Returns the instant at which the next event is sent; `None` if no event is waiting.
    pub fn next_send_at(&self) -> Option<DateTime<Utc>> {
        self.state().waiting.keys().next().map(|(at, _)| *at)
    }

    /// Returns the events that are due at `now`. Also schedules each returned event again for a later time, in case
    /// Dueday does not receive the event now.
    pub fn take_due_events(&self, now: DateTime<Utc>) -> Vec<GatewayEvent> {
        let mut state = self.state();
        let later = state.waiting.split_off(&(now + TimeDelta::seconds(1), 0));
        let due = std::mem::replace(&mut state.waiting, later);
        for ((_, number), event) in &due {
            let again = now + TimeDelta::minutes(state.rng.random_range(30..8 * 60));
            state.waiting.insert((again, *number), event.clone());
        }
        due.into_values().collect()
    }

    /// Removes `event`, because Dueday has received it.
    pub fn remove_received(&self, event: &GatewayEvent) {
        self.state().waiting.retain(|_, waiting| waiting != event);
    }

    fn state(&self) -> MutexGuard<'_, EventQueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
