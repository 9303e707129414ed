//! A process's calls, each of which waits for its turn.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock as _;
use emulator::{Call, Fault, Faults, Operation, Turn};

use super::{ActorId, SLOWEST_REQUEST, Schedule, Ticket};
use crate::random_faults::RandomFaults;

/// A person acts on what was just seen: each call takes no longer than this.
const PROMPT: TimeDelta = TimeDelta::minutes(1);

tokio::task_local! {
    /// When the charge is given up that is being carried out: no request of it reaches the gateway later.
    pub static GIVEN_UP_AT: DateTime<Utc>;
}

/// The turns of a process: it acts for one actor at a time, or for nobody. What nobody does waits for nothing, and nothing
/// goes wrong with it.
pub struct Turns {
    schedule: Schedule,
    faults: Arc<RandomFaults>,
    actor: AtomicU64,
    is_prompt: AtomicBool,
}

impl Turns {
    pub fn new(schedule: Schedule, faults: Arc<RandomFaults>) -> Self {
        Self { schedule, faults, actor: AtomicU64::new(0), is_prompt: AtomicBool::new(false) }
    }

    /// From now on the process acts for `actor`, 0 being nobody.
    pub fn act_for(&self, actor: ActorId, is_prompt: bool) {
        self.actor.store(actor, Ordering::Relaxed);
        self.is_prompt.store(is_prompt, Ordering::Relaxed);
    }

    /// For whom the process acts.
    pub fn actor(&self) -> ActorId {
        self.actor.load(Ordering::Relaxed)
    }
}

impl Faults for Turns {
    fn next(&self, call: &Call<'_>) -> Option<Fault> {
        if self.actor() == 0 || self.schedule.is_calm() {
            return None;
        }
        let fault = self.faults.next(call);
        if let Some(fault) = fault {
            self.schedule.note(&format!("{:?} {fault:?}", call.operation));
        }
        fault
    }

    fn turn(&self, operation: Operation<'_>, is_answer: bool) -> Option<Turn> {
        let actor = self.actor();
        if actor == 0 {
            return Some(Box::pin(std::future::ready(())));
        }
        let is_sent = operation == Operation::Charge && !is_answer;
        let slowest = || GIVEN_UP_AT.try_with(|at| *at - self.schedule.now()).unwrap_or(SLOWEST_REQUEST);
        let longest = match (is_sent, self.is_prompt.load(Ordering::Relaxed)) {
            (_, true) => Some(PROMPT),
            (true, false) => Some(slowest()),
            (false, false) => None,
        };
        Some(Box::pin(self.schedule.wait(actor, None, longest)))
    }
}

/// Waits for a turn.
pub struct Waiting {
    schedule: Schedule,
    number: u64,
}

impl Schedule {
    fn now(&self) -> DateTime<Utc> {
        self.state().clock.now()
    }

    /// A turn of `actor`, not before `from` and at most `longest` from now.
    pub fn wait(&self, actor: ActorId, from: Option<DateTime<Utc>>, longest: Option<TimeDelta>) -> Waiting {
        let mut state = self.state();
        state.tickets_given += 1;
        let number = state.tickets_given;
        let by = longest.map(|longest| state.clock.now() + longest);
        state.tickets.push(Ticket { number, actor, from, by, waker: None });
        Waiting { schedule: self.clone(), number }
    }
}

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.schedule.state();
        // A ticket that is not there any more was granted.
        let Some(ticket) = state.tickets.iter_mut().find(|ticket| ticket.number == self.number) else {
            return Poll::Ready(());
        };
        ticket.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.schedule.state().tickets.retain(|ticket| ticket.number != self.number);
    }
}
