//! A worker of the payment batch, one outside call at a time: claim, charge, settle; or take over, look up, settle.

use billing::{
    Attempt, Outcome, Period, Resolution, Settled, Standing, Status, Subscription, Token, resolve, settle, standing,
};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use gateways::{ChargeAnswer, ChargeRequest};
use ulid::Ulid;

use crate::model::flaw::Flaw;
use crate::model::gateway::Flight;
use crate::model::life::{LEASE, Life, State};

/// A worker, and the day its run is for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Worker {
    pub phase: Phase,
    pub today: NaiveDate,
}

/// What a worker is about to do, with what it knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[allow(clippy::large_enum_variant, reason = "a state of the model is compared and cloned as a whole")]
pub enum Phase {
    #[default]
    Idle,
    /// Asks for its claim again: the answer to the first request was lost.
    Claiming {
        seen: NaiveDate,
        token: Token,
        until: Instant,
    },
    /// Cancels what was to end by now.
    TakingOut {
        before: Subscription,
        after: Subscription,
    },
    TakingOver {
        attempt: Attempt,
        token: Token,
        until: Instant,
    },
    /// Holds an attempt in doubt, and asks the gateway.
    LookingUp {
        held: Subscription,
        until: Instant,
    },
    /// Holds an attempt that it may charge until then.
    Charging {
        held: Subscription,
        until: Instant,
    },
    /// The request is under way.
    Waiting {
        held: Subscription,
    },
    /// Its key was answered with another request's parameters.
    KeyReused {
        held: Subscription,
    },
    Settling {
        stored: Subscription,
        held: Attempt,
        outcome: Outcome,
    },
}

type Instant = DateTime<Utc>;

/// How long after a claim or take-over a charge may start.
const PERMISSION: TimeDelta = TimeDelta::minutes(5);
/// Look-ups begin this long before the claim.
const LOOK_BACK: TimeDelta = TimeDelta::days(1);

/// Claims what the index showed as due on `seen`.
pub fn claim(life: &Life, state: &mut State, worker: usize, seen: NaiveDate, is_answered: bool) {
    state.workers[worker].today = state.today();
    let (token, until) = (token(life, state, worker), state.now + PERMISSION);
    ask_for_claim(life, state, worker, (seen, token, until), is_answered);
}

/// The condition of the claim, and what it freezes: as the table's expression has it.
pub fn claimed(stored: &Subscription, seen: NaiveDate, token: Token, now: Instant) -> Option<Subscription> {
    let is_due = stored.next_payment_on == Some(seen)
        && matches!(stored.status, Status::Active | Status::PastDue)
        && stored.attempt.is_none()
        && stored.cancel_from.is_none_or(|from| from > Period::of(stored.due_on));
    let no = stored.attempt_seq + 1;
    let attempt = Attempt {
        table: Some(Ulid::nil()),
        no,
        due_on: stored.due_on,
        amount: stored.price,
        payment_method: stored.payment_method.clone(),
        claimed_at: now,
        leased_until: now + LEASE,
        held_by: token,
    };
    is_due.then(|| Subscription { attempt_seq: no, attempt: Some(attempt), ..stored.clone() })
}

fn ask_for_claim(
    life: &Life,
    state: &mut State,
    worker: usize,
    (seen, token, until): (NaiveDate, Token, Instant),
    is_answered: bool,
) {
    let today = state.workers[worker].today;
    let mut stored = state.stored.clone();
    if life.flaw == Flaw::ClaimsTheEnding {
        stored.cancel_from = None;
    }
    let phase = match claimed(&stored, seen, token, state.now) {
        Some(held) if life.flaw == Flaw::NoClaim => Phase::Charging { held, until },
        Some(held) => {
            if state.is_stopped || state.stored.is_ending() || !state.stored.status.is_chargeable() {
                state.misdeed = Some("what is stopped, ending or unpaid was claimed");
            }
            state.write(held);
            let held = state.stored.clone();
            if is_answered { Phase::Charging { held, until } } else { Phase::Claiming { seen, token, until } }
        }
        None => match standing(&state.stored, token, seen, today, state.now) {
            Standing::Ours => Phase::Charging { held: state.stored.clone(), until },
            Standing::InDoubt(attempt) => {
                Phase::TakingOver { attempt, token: self::token(life, state, worker), until: state.now + PERMISSION }
            }
            Standing::DueOn(seen) => {
                Phase::Claiming { seen, token: self::token(life, state, worker), until: state.now + PERMISSION }
            }
            Standing::Ended => Phase::TakingOut {
                before: state.stored.clone(),
                after: state.stored.cancel(today, state.now).subscription,
            },
            Standing::Stranded => {
                let after = Subscription { next_payment_on: None, ..state.stored.clone() };
                Phase::TakingOut { before: state.stored.clone(), after }
            }
            Standing::HeldElsewhere | Standing::NotDue | Standing::Disputed | Standing::Found => Phase::Idle,
        },
    };
    state.workers[worker].phase = phase;
}

/// Takes the next step of `worker`.
pub fn step(life: &Life, state: &mut State, worker: usize, is_answered: bool) {
    let Worker { phase, today } = std::mem::take(&mut state.workers[worker]);
    state.workers[worker].today = today;
    let next = match phase {
        Phase::Idle | Phase::Waiting { .. } => phase,
        Phase::Claiming { seen, token, until } => {
            return ask_for_claim(life, state, worker, (seen, token, until), is_answered);
        }
        Phase::TakingOut { before, after } => {
            if state.stored.version == before.version {
                state.write(after);
            }
            Phase::Idle
        }
        Phase::TakingOver { attempt, token, until } => take_over(life, state, attempt, (token, until), is_answered),
        Phase::LookingUp { held, until } => look_up(life, state, held, until),
        Phase::Charging { held, until } => charge(state, worker, held, until),
        Phase::KeyReused { held } => {
            let attempt = open(&held);
            match resolve(&held, attempt, &state.known_since(attempt.claimed_at - LOOK_BACK), state.now) {
                Resolution::Settle(outcome) => settling(&held, outcome),
                Resolution::Processing => Phase::Idle,
                Resolution::ChargeAgain => settling(&held, Outcome::Rejected { code: "key_in_use".to_owned() }),
            }
        }
        Phase::Settling { stored, held, outcome } => {
            write_settlement(life, state, today, (stored, held, outcome), is_answered)
        }
    };
    state.workers[worker].phase = next;
}

/// The condition of a take-over of `attempt`, and what it writes: as the table's expression has it.
pub fn taken_over(stored: &Subscription, attempt: &Attempt, token: Token, now: Instant) -> Option<Subscription> {
    let as_seen = |a: &Attempt| (a.no, a.held_by, a.leased_until);
    let open = stored.attempt.as_ref().filter(|open| as_seen(open) == as_seen(attempt))?;
    let held = Attempt { held_by: token, leased_until: now + LEASE, ..open.clone() };
    Some(Subscription { attempt: Some(held), ..stored.clone() })
}

fn take_over(
    life: &Life,
    state: &mut State,
    attempt: Attempt,
    (token, until): (Token, Instant),
    is_answered: bool,
) -> Phase {
    let is_ours = |open: &Attempt| open.no == attempt.no && open.held_by == token;
    if state.stored.attempt.as_ref().is_some_and(is_ours) {
        return Phase::LookingUp { held: state.stored.clone(), until };
    }
    let Some(mut held) = taken_over(&state.stored, &attempt, token, state.now) else { return Phase::Idle };
    if let (Flaw::TakeOverRewritesAttemptAt, Some(open)) = (life.flaw, &mut held.attempt) {
        open.claimed_at = state.now;
    }
    state.write(held);
    let held = state.stored.clone();
    if is_answered { Phase::LookingUp { held, until } } else { Phase::TakingOver { attempt, token, until } }
}

fn look_up(life: &Life, state: &State, held: Subscription, until: Instant) -> Phase {
    let attempt = open(&held);
    let known = match life.flaw {
        Flaw::NoLookUp => Vec::new(),
        _ => state.known_since(attempt.claimed_at - LOOK_BACK),
    };
    match resolve(&held, attempt, &known, state.now) {
        Resolution::Settle(outcome) => settling(&held, outcome),
        Resolution::Processing => Phase::Idle,
        Resolution::ChargeAgain if life.flaw == Flaw::AllowedByLookUp => {
            Phase::Charging { held, until: state.now + PERMISSION }
        }
        Resolution::ChargeAgain => Phase::Charging { held, until },
    }
}

fn charge(state: &mut State, worker: usize, held: Subscription, until: Instant) -> Phase {
    if state.now >= until {
        return Phase::Idle;
    }
    let request = ChargeRequest::of(&held, open(&held));
    state.gateway.in_flight.push(Flight { sender: worker, sent_at: state.now, request });
    Phase::Waiting { held }
}

/// The gateway's answer to `flight` arrives at whoever sent it, if that still waits for it.
pub fn answered(_: &Life, state: &mut State, flight: &Flight, answer: ChargeAnswer) {
    let worker = &mut state.workers[flight.sender];
    let Phase::Waiting { held } = &worker.phase else { return };
    if ChargeRequest::of(held, open(held)) != flight.request {
        return;
    }
    worker.phase = match answer {
        ChargeAnswer::Succeeded(payment) => settling(held, Outcome::Succeeded(payment)),
        ChargeAnswer::Declined(decline) => settling(held, Outcome::Declined(decline)),
        ChargeAnswer::Rejected { code } => settling(held, Outcome::Rejected { code }),
        ChargeAnswer::KeyReused => Phase::KeyReused { held: held.clone() },
        ChargeAnswer::Processing
        | ChargeAnswer::Unknown { .. }
        | ChargeAnswer::Unproven { .. }
        | ChargeAnswer::Throttled { .. }
        | ChargeAnswer::Unusable { .. } => Phase::Idle,
    };
}

/// `worker` is not answered: what happened is unknown, and the attempt stays open.
pub fn time_out(life: &Life, state: &mut State, worker: usize) {
    let Phase::Waiting { held } = &state.workers[worker].phase else { return };
    state.workers[worker].phase = match life.flaw {
        Flaw::NewKeyInDoubt => settling(held, Outcome::Rejected { code: "time_out".to_owned() }),
        _ => Phase::Idle,
    };
}

fn write_settlement(
    life: &Life,
    state: &mut State,
    today: NaiveDate,
    (mut stored, held, outcome): (Subscription, Attempt, Outcome),
    is_answered: bool,
) -> Phase {
    let mut basis = stored.clone();
    let mut held = held;
    if life.flaw == Flaw::RejectedByAnyone {
        // As if whoever holds it by now had been told.
        held.held_by = basis.attempt.as_ref().map_or(held.held_by, |open| open.held_by);
    }
    if life.flaw == Flaw::SettleIgnoresStatus {
        basis.status = Status::Active;
    }
    let Settled::Write(settlement) = settle(&basis, &held, &outcome, &life.policy, today, state.now) else {
        return Phase::Idle;
    };
    if state.settle(&stored, &settlement, life.flaw != Flaw::SettleUnconditionally) {
        return if is_answered { Phase::Idle } else { Phase::Settling { stored, held, outcome } };
    }
    if stored.version == state.stored.version {
        // The receipt or the record is there already.
        return Phase::Idle;
    }
    if life.flaw == Flaw::NoClaim {
        return Phase::Idle;
    }
    stored = state.stored.clone();
    Phase::Settling { stored, held, outcome }
}

fn settling(held: &Subscription, outcome: Outcome) -> Phase {
    Phase::Settling { stored: held.clone(), held: open(held).clone(), outcome }
}

/// Unique among the calls that take effect: each of them raises the version.
fn token(life: &Life, state: &State, worker: usize) -> Token {
    let call = if life.flaw == Flaw::ClaimProvedByRun { 0 } else { state.stored.version };
    Token(Ulid::from_parts(call, u128::try_from(worker).unwrap()))
}

fn open(held: &Subscription) -> &Attempt {
    held.attempt.as_ref().expect("a worker holds an attempt")
}
