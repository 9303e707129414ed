//! The schedule: everybody's calls to the outside wait for their turn, and a seed decides whose turn it is. No thread is
//! started and no real time passes, so that a seed repeats everything.
//!
//! When all who are there wait, one of them goes on, or the clock does, or one is frozen for a time: a function that is
//! suspended and thawed, whose leases lapse meanwhile.

mod actors;
mod turns;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

pub use actors::{Actors, now_or_panic};
pub use turns::{GIVEN_UP_AT, Turns};

/// Who is scheduled: a run, a request, a person.
pub type ActorId = u64;

/// A request to the gateway reaches it within this time of its being sent, or never: a lease allows for that.
pub const SLOWEST_REQUEST: TimeDelta = TimeDelta::minutes(5);
/// The longest time for which an actor is frozen.
const LONGEST_FREEZE_MINUTES: i64 = 60;
/// Out of so many decisions, this many let the clock go on, and this many freeze somebody.
const DECISIONS: u32 = 1_000;
const CLOCK_GOES_ON: u32 = 30;
const SOMEBODY_FREEZES: u32 = 2;

/// The schedule. Clones are the same one.
#[derive(Clone)]
pub struct Schedule(Arc<Mutex<State>>);

struct State {
    rng: ChaCha8Rng,
    clock: Arc<SimulatedClock>,
    tickets: Vec<Ticket>,
    tickets_given: u64,
    frozen: BTreeMap<ActorId, DateTime<Utc>>,
    is_calm: bool,
    turns: u64,
    trace: DefaultHasher,
}

/// What somebody waits for.
struct Ticket {
    number: u64,
    actor: ActorId,
    /// Not before this instant.
    from: Option<DateTime<Utc>>,
    /// No later than this instant.
    by: Option<DateTime<Utc>>,
    waker: Option<Waker>,
}

/// What the schedule decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// This one goes on.
    Turn(ActorId),
    /// Time has passed.
    Time,
    /// Nobody waits.
    Nobody,
}

impl Schedule {
    /// A schedule on `clock`. Equal seeds decide the same.
    pub fn new(seed: u64, clock: Arc<SimulatedClock>) -> Self {
        Self(Arc::new(Mutex::new(State {
            rng: ChaCha8Rng::seed_from_u64(seed),
            clock,
            tickets: Vec::new(),
            tickets_given: 0,
            frozen: BTreeMap::new(),
            is_calm: false,
            turns: 0,
            trace: DefaultHasher::new(),
        })))
    }

    /// Nobody is frozen any more, and time passes slowly.
    pub fn calm_down(&self) {
        let mut state = self.state();
        state.is_calm = true;
        state.frozen.clear();
    }

    pub fn is_calm(&self) -> bool {
        self.state().is_calm
    }

    /// Turns taken so far.
    pub fn turns(&self) -> u64 {
        self.state().turns
    }

    /// Adds `what` to the trace: two plays of one seed have equal traces.
    pub fn note(&self, what: &str) {
        what.hash(&mut self.state().trace);
    }

    /// A digest of everything that was noted so far, in its order.
    pub fn digest(&self) -> u64 {
        self.state().trace.finish()
    }

    /// Decides what happens next. When all who wait are frozen or wait for a later time, the clock goes on, at most to
    /// `until`.
    pub fn decide(&self, until: Option<DateTime<Utc>>) -> Decision {
        self.state().decide(until)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn decide(&mut self, until: Option<DateTime<Utc>>) -> Decision {
        let now = self.clock.now();
        self.frozen.retain(|_, thaws_at| *thaws_at > now);
        if self.tickets.is_empty() {
            return Decision::Nobody;
        }
        if let Some(late) = self.tickets.iter().position(|ticket| ticket.by.is_some_and(|by| by <= now)) {
            return self.grant(late);
        }
        let is_ready =
            |ticket: &Ticket| !self.frozen.contains_key(&ticket.actor) && ticket.from.is_none_or(|from| from <= now);
        let ready: Vec<usize> = (0..self.tickets.len()).filter(|index| is_ready(&self.tickets[*index])).collect();
        if ready.is_empty() {
            let thaws = self.frozen.values().copied();
            let begins = self.tickets.iter().filter_map(|ticket| ticket.from.filter(|from| *from > now));
            let next = thaws.chain(begins).chain(until).min().unwrap_or(now + TimeDelta::seconds(1));
            self.pass_to(next.max(now));
            return Decision::Time;
        }
        let chosen = ready[self.rng.random_range(0..ready.len())];
        match self.rng.random_range(0..DECISIONS) {
            roll if roll < CLOCK_GOES_ON => {
                let passed = self.time_that_passes();
                self.pass_to(now + passed);
                Decision::Time
            }
            roll if roll < CLOCK_GOES_ON + SOMEBODY_FREEZES && !self.is_calm => {
                self.freeze(self.tickets[chosen].actor, now);
                Decision::Time
            }
            _ => self.grant(chosen),
        }
    }

    fn grant(&mut self, index: usize) -> Decision {
        let ticket = self.tickets.remove(index);
        self.turns += 1;
        ticket.number.hash(&mut self.trace);
        if let Some(waker) = ticket.waker {
            waker.wake();
        }
        Decision::Turn(ticket.actor)
    }

    fn time_that_passes(&mut self) -> TimeDelta {
        if !self.is_calm && self.rng.random_ratio(1, 12) {
            return TimeDelta::seconds(self.rng.random_range(60..480));
        }
        TimeDelta::milliseconds(self.rng.random_range(20..20_000))
    }

    /// The clock goes on to `instant`, or to where somebody cannot wait any longer.
    fn pass_to(&mut self, instant: DateTime<Utc>) {
        let now = self.clock.now();
        let latest = self.tickets.iter().filter_map(|ticket| ticket.by).min();
        let instant = latest.map_or(instant, |latest| instant.min(latest)).max(now);
        self.clock.set(instant);
        instant.timestamp_millis().hash(&mut self.trace);
    }

    fn freeze(&mut self, actor: ActorId, now: DateTime<Utc>) {
        let minutes = self.rng.random_range(1..=LONGEST_FREEZE_MINUTES);
        // Somebody who cannot wait so long is not frozen.
        if self.tickets.iter().all(|ticket| ticket.actor != actor || ticket.by.is_none()) {
            self.frozen.insert(actor, now + TimeDelta::minutes(minutes));
        }
    }
}
