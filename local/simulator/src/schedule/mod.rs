//! The schedule of a simulation: every external call (to the table, the gateway or the mailer) waits for its turn, and
//! a random seed decides which call is next. The simulation starts no thread and needs no real time, so the same seed
//! repeats the same calls.
//!
//! Whenever all actors wait, the schedule resumes one actor, advances the clock, or freezes an actor for a while. A
//! frozen actor corresponds to a suspended Lambda function. The leases of the actor may expire while the actor is
//! frozen.

mod actors;
mod process_schedule;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

pub use actors::{UnfinishedActors, poll_future_until_ready};
pub use process_schedule::{CHARGE_DEADLINE, ProcessSchedule};

/// The number of an actor: a batch run, an API request, an event or an operator. 0 means no actor.
pub type ActorId = u64;

/// The maximum time in which a request reaches the gateway after it was sent; a slower request never arrives. The
/// leases are long enough for this time.
pub const SLOWEST_REQUEST: TimeDelta = TimeDelta::minutes(5);
/// The maximum time for which an actor is frozen.
const LONGEST_FREEZE_MINUTES: i64 = 60;
/// The number of decisions to which the averages `CLOCK_ADVANCES` and `ACTOR_FREEZES` refer.
const DECISION_COUNT: u32 = 1_000;
/// On average, this number of `DECISION_COUNT` decisions advance the clock.
const CLOCK_ADVANCES: u32 = 30;
/// On average, this number of `DECISION_COUNT` decisions freeze an actor.
const ACTOR_FREEZES: u32 = 2;

/// Decides in which order the calls of all actors continue. All clones of a schedule share one state.
#[derive(Clone)]
pub struct CallSchedule(Arc<Mutex<ScheduleState>>);

/// The state of a schedule: the waiting calls, the frozen actors, and the random numbers for the decisions.
struct ScheduleState {
    rng: ChaCha8Rng,
    clock: Arc<SimulatedClock>,
    pending_calls: Vec<PendingCall>,
    /// The number of calls that were registered so far. Each call gets the next number.
    calls_registered: u64,
    /// The instant at which the freeze of each frozen actor ends.
    frozen: BTreeMap<ActorId, DateTime<Utc>>,
    /// Whether the faults of the simulation have been stopped.
    is_fault_free: bool,
    resumed_calls: u64,
    /// The hash of all texts, resumed calls and clock changes so far.
    trace: DefaultHasher,
}

/// An external call that waits for its turn.
struct PendingCall {
    number: u64,
    actor: ActorId,
    /// The earliest instant at which the call is resumed; `None` if there is no limit.
    earliest: Option<DateTime<Utc>>,
    /// The latest instant at which the call is resumed; `None` if there is no limit.
    latest: Option<DateTime<Utc>>,
    waker: Option<Waker>,
}

/// The next step of a simulation, which the schedule chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScheduleDecision {
    /// This actor continues with one of its waiting calls.
    Resume(ActorId),
    /// The clock has advanced.
    TimePassed,
    /// No call waits for its turn.
    NoPendingCall,
}

impl CallSchedule {
    /// Creates a schedule on `clock`. Equal seeds give equal decisions.
    pub fn new(seed: u64, clock: Arc<SimulatedClock>) -> Self {
        Self(Arc::new(Mutex::new(ScheduleState {
            rng: ChaCha8Rng::seed_from_u64(seed),
            clock,
            pending_calls: Vec::new(),
            calls_registered: 0,
            frozen: BTreeMap::new(),
            is_fault_free: false,
            resumed_calls: 0,
            trace: DefaultHasher::new(),
        })))
    }

    /// Ends all freezes. After this call, no actor is frozen, and the clock advances only in small steps.
    pub fn stop_faults(&self) {
        let mut state = self.state();
        state.is_fault_free = true;
        state.frozen.clear();
    }

    /// Returns whether the faults of the simulation have been stopped.
    pub fn is_fault_free(&self) -> bool {
        self.state().is_fault_free
    }

    /// Returns the number of calls that were resumed so far.
    pub fn resumed_call_count(&self) -> u64 {
        self.state().resumed_calls
    }

    /// Adds `text` to the trace of the simulation. Two simulations with the same seed have equal traces.
    pub fn add_to_trace(&self, text: &str) {
        text.hash(&mut self.state().trace);
    }

    /// Returns a digest of the whole trace so far.
    pub fn trace_digest(&self) -> u64 {
        self.state().trace.finish()
    }

    /// Decides what happens next. If all waiting calls are frozen or wait for a later instant, the clock advances, at
    /// most to `until`.
    pub fn decide_next_step(&self, until: Option<DateTime<Utc>>) -> ScheduleDecision {
        self.state().decide_next_step(until)
    }

    fn state(&self) -> MutexGuard<'_, ScheduleState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScheduleState {
    /// Makes the decision that [`CallSchedule::decide_next_step`] describes.
    fn decide_next_step(&mut self, until: Option<DateTime<Utc>>) -> ScheduleDecision {
        let now = self.clock.now();
        self.frozen.retain(|_, thaws_at| *thaws_at > now);
        if self.pending_calls.is_empty() {
            return ScheduleDecision::NoPendingCall;
        }
        if let Some(late) = self.pending_calls.iter().position(|call| call.latest.is_some_and(|latest| latest <= now)) {
            return self.resume(late);
        }
        let is_ready = |call: &PendingCall| {
            !self.frozen.contains_key(&call.actor) && call.earliest.is_none_or(|earliest| earliest <= now)
        };
        let ready: Vec<usize> =
            (0..self.pending_calls.len()).filter(|index| is_ready(&self.pending_calls[*index])).collect();
        if ready.is_empty() {
            let thaws = self.frozen.values().copied();
            let begins = self.pending_calls.iter().filter_map(|call| call.earliest.filter(|earliest| *earliest > now));
            let next = thaws.chain(begins).chain(until).min().unwrap_or(now + TimeDelta::seconds(1));
            self.advance_clock_to(next.max(now));
            return ScheduleDecision::TimePassed;
        }
        let chosen = ready[self.rng.random_range(0..ready.len())];
        match self.rng.random_range(0..DECISION_COUNT) {
            roll if roll < CLOCK_ADVANCES => {
                let passed = self.random_duration();
                self.advance_clock_to(now + passed);
                ScheduleDecision::TimePassed
            }
            roll if roll < CLOCK_ADVANCES + ACTOR_FREEZES && !self.is_fault_free => {
                self.freeze_actor(self.pending_calls[chosen].actor, now);
                ScheduleDecision::TimePassed
            }
            _ => self.resume(chosen),
        }
    }

    /// Gives the pending call at `index` its turn.
    fn resume(&mut self, index: usize) -> ScheduleDecision {
        let call = self.pending_calls.remove(index);
        self.resumed_calls += 1;
        call.number.hash(&mut self.trace);
        if let Some(waker) = call.waker {
            waker.wake();
        }
        ScheduleDecision::Resume(call.actor)
    }

    /// Returns a random duration by which the clock advances.
    fn random_duration(&mut self) -> TimeDelta {
        if !self.is_fault_free && self.rng.random_ratio(1, 12) {
            return TimeDelta::seconds(self.rng.random_range(60..480));
        }
        TimeDelta::milliseconds(self.rng.random_range(20..20_000))
    }

    /// Advances the clock to `instant`, or to the latest instant of a waiting call if that is earlier.
    fn advance_clock_to(&mut self, instant: DateTime<Utc>) {
        let now = self.clock.now();
        let latest = self.pending_calls.iter().filter_map(|call| call.latest).min();
        let instant = latest.map_or(instant, |latest| instant.min(latest)).max(now);
        self.clock.set(instant);
        instant.timestamp_millis().hash(&mut self.trace);
    }

    fn freeze_actor(&mut self, actor: ActorId, now: DateTime<Utc>) {
        let minutes = self.rng.random_range(1..=LONGEST_FREEZE_MINUTES);
        // Freezes the actor, unless one of its waiting calls must be resumed before a fixed instant.
        if self.pending_calls.iter().all(|call| call.actor != actor || call.latest.is_none()) {
            self.frozen.insert(actor, now + TimeDelta::minutes(minutes));
        }
    }
}
