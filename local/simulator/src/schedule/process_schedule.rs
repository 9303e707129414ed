//! Connects one process to the schedule: each external call of the process waits for its turn.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock as _;
use emulator::{CallTurn, ExternalCall, ExternalOperation, Fault, FaultDecider};

use super::{ActorId, CallSchedule, PendingCall, SLOWEST_REQUEST};
use crate::random_faults::RandomFaults;

/// The maximum time that a call of an operator waits for its turn. This time is short, because operators act on data
/// that they have just read.
const OPERATOR_CALL_LIMIT: TimeDelta = TimeDelta::minutes(1);

tokio::task_local! {
    /// The deadline of the current charge: no request of this charge reaches the gateway later.
    pub static CHARGE_DEADLINE: DateTime<Utc>;
}

/// Connects a process to the schedule. A process acts for one actor at a time, or for no actor (0). The calls of a
/// process without an actor neither wait nor fail.
pub struct ProcessSchedule {
    schedule: CallSchedule,
    faults: Arc<RandomFaults>,
    actor: AtomicU64,
    is_prompt: AtomicBool,
}

impl ProcessSchedule {
    pub fn new(schedule: CallSchedule, faults: Arc<RandomFaults>) -> Self {
        Self { schedule, faults, actor: AtomicU64::new(0), is_prompt: AtomicBool::new(false) }
    }

    /// Sets the actor for which the process acts; 0 means no actor. If `is_prompt`, none of the actor's calls waits
    /// longer than `OPERATOR_CALL_LIMIT`.
    pub fn set_calling_actor(&self, actor: ActorId, is_prompt: bool) {
        self.actor.store(actor, Ordering::Relaxed);
        self.is_prompt.store(is_prompt, Ordering::Relaxed);
    }

    /// Returns the actor for which the process acts.
    pub fn calling_actor(&self) -> ActorId {
        self.actor.load(Ordering::Relaxed)
    }
}

impl FaultDecider for ProcessSchedule {
    fn fault_of_call(&self, call: &ExternalCall<'_>) -> Option<Fault> {
        if self.calling_actor() == 0 || self.schedule.is_fault_free() {
            return None;
        }
        let fault = self.faults.fault_of_call(call);
        if let Some(fault) = fault {
            self.schedule.add_to_trace(&format!("{:?} {fault:?}", call.operation));
        }
        fault
    }

    fn turn_of_call(&self, operation: ExternalOperation<'_>, is_after_call: bool) -> Option<CallTurn> {
        let actor = self.calling_actor();
        if actor == 0 {
            return Some(Box::pin(std::future::ready(())));
        }
        let sends_charge = operation == ExternalOperation::Charge && !is_after_call;
        let time_left = || CHARGE_DEADLINE.try_with(|at| *at - self.schedule.now()).unwrap_or(SLOWEST_REQUEST);
        let longest = match (sends_charge, self.is_prompt.load(Ordering::Relaxed)) {
            (_, true) => Some(OPERATOR_CALL_LIMIT),
            (true, false) => Some(time_left()),
            (false, false) => None,
        };
        Some(Box::pin(self.schedule.wait_for_turn(actor, None, longest)))
    }
}

/// The future that an external call (to the table, the gateway or the mailer) awaits until the schedule gives the call
/// its turn.
pub struct TurnFuture {
    schedule: CallSchedule,
    number: u64,
}

impl CallSchedule {
    fn now(&self) -> DateTime<Utc> {
        self.state().clock.now()
    }

    /// Registers a call of `actor`, and returns a future that is ready when the call has its turn. The turn is not
    /// before `earliest`, and comes within the time `longest` from now. `None` means no limit.
    pub fn wait_for_turn(
        &self,
        actor: ActorId,
        earliest: Option<DateTime<Utc>>,
        longest: Option<TimeDelta>,
    ) -> TurnFuture {
        let mut state = self.state();
        state.calls_registered += 1;
        let number = state.calls_registered;
        let latest = longest.map(|longest| state.clock.now() + longest);
        state.pending_calls.push(PendingCall { number, actor, earliest, latest, waker: None });
        TurnFuture { schedule: self.clone(), number }
    }
}

impl Future for TurnFuture {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.schedule.state();
        // If the call is no longer pending, the schedule has resumed it.
        let Some(call) = state.pending_calls.iter_mut().find(|call| call.number == self.number) else {
            return Poll::Ready(());
        };
        call.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for TurnFuture {
    fn drop(&mut self) {
        self.schedule.state().pending_calls.retain(|call| call.number != self.number);
    }
}
