//! A model of a worker of the payment batch. Each step of the worker is one request to the table or to the gateway. For
//! a new attempt, the worker claims, charges and settles. For an attempt in doubt, it takes over, looks up and settles.

use billing::{
    Attempt, AttemptOutcome, ClaimRefusal, ClaimToken, InDoubtResolution, Period, Subscription, SubscriptionStatus,
    claim_refusal, resolve_attempt_in_doubt, settle_open_attempt,
};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use gateways::{ChargeRequest, ChargeResponse};
use ulid::Ulid;

use crate::flaw::Flaw;
use crate::gateway::RequestInFlight;
use crate::subscription_model::{LEASE, State, SubscriptionModel};

/// A worker of the payment batch.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Worker {
    pub phase: Phase,
    /// The day on which the worker sent its latest claim.
    pub today: NaiveDate,
}

/// The next step of a worker, with the data that the worker needs for this step.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[allow(clippy::large_enum_variant, reason = "a state of the model is compared and cloned as a whole")]
pub enum Phase {
    #[default]
    Idle,
    /// The worker sends a claim again, because the response to the first claim was lost or the index showed an outdated
    /// date.
    Claiming { indexed_date: NaiveDate, token: ClaimToken, until: Instant },
    /// The worker removes the subscription from the index, because the subscription has ended or is not chargeable.
    RemovingFromIndex { before: Subscription, after: Subscription },
    /// The worker takes over an attempt in doubt (an open attempt whose lease has expired).
    TakingOver { attempt: Attempt, token: ClaimToken, until: Instant },
    /// The worker has taken over an attempt in doubt, and looks up the payment of the attempt at the gateway.
    LookingUp { held: Subscription, until: Instant },
    /// The worker holds a claim, and may send the charge request before the instant `until`.
    Charging { held: Subscription, until: Instant },
    /// The worker waits for the response to its charge request.
    Waiting { held: Subscription },
    /// The gateway responded that the idempotency key was used for a request with other parameters.
    KeyReused { held: Subscription },
    /// The worker writes the outcome of its attempt `held`, on condition that the item still equals `stored`.
    Settling { stored: Subscription, held: Attempt, outcome: AttemptOutcome },
}

type Instant = DateTime<Utc>;

/// The time after a claim or take-over in which the worker may send the charge request.
const CHARGE_PERMISSION: TimeDelta = TimeDelta::minutes(5);
/// A look-up also reads payments from before the claim. This is the maximum time between such a payment and the claim.
const LOOK_BACK: TimeDelta = TimeDelta::days(1);

/// Lets `worker` claim the subscription, which the index shows with the due date `indexed_date`. `is_answered` states
/// whether the worker gets the response to its claim.
pub fn claim_payment(
    model: &SubscriptionModel,
    state: &mut State,
    worker: usize,
    indexed_date: NaiveDate,
    is_answered: bool,
) {
    state.workers[worker].today = state.today();
    let token = unique_claim_token(model, state, worker);
    let until = state.now + CHARGE_PERMISSION;
    request_claim(model, state, worker, indexed_date, token, until, is_answered);
}

/// Returns the subscription after a claim; `None` if the claim is refused. The condition in this function must agree
/// with the table's condition expression for a claim.
pub fn item_after_claim(
    stored: &Subscription,
    indexed_date: NaiveDate,
    token: ClaimToken,
    now: Instant,
) -> Option<Subscription> {
    let is_due = stored.next_payment_on == Some(indexed_date)
        && matches!(stored.status, SubscriptionStatus::Active | SubscriptionStatus::PastDue)
        && stored.attempt.is_none()
        && stored.cancel_from.is_none_or(|from| from > Period::from_day(stored.due_on));
    let no = stored.attempt_seq + 1;
    let attempt = Attempt {
        table: Some(Ulid::nil()),
        no,
        due_on: stored.due_on,
        amount: stored.price,
        payment_method: stored.payment_method.clone(),
        claimed_at: now,
        leased_until: now + LEASE,
        claim_token: token,
    };
    is_due.then(|| Subscription { attempt_seq: no, attempt: Some(attempt), ..stored.clone() })
}

/// Sends the claim with `token` for `worker`. `until` is the time until which the worker may then send the charge
/// request.
fn request_claim(
    model: &SubscriptionModel,
    state: &mut State,
    worker: usize,
    indexed_date: NaiveDate,
    token: ClaimToken,
    until: Instant,
    is_answered: bool,
) {
    let today = state.workers[worker].today;
    let mut stored = state.stored.clone();
    if model.flaw == Flaw::EndingSubscriptionClaimed {
        stored.cancel_from = None;
    }
    let phase = match item_after_claim(&stored, indexed_date, token, state.now) {
        Some(held) if model.flaw == Flaw::NoClaim => Phase::Charging { held, until },
        Some(held) => {
            if state.is_stopped || state.stored.is_ending() || !state.stored.status.is_chargeable() {
                state.violation = Some("a stopped, ending or unpaid subscription was claimed");
            }
            state.write(held);
            let held = state.stored.clone();
            if is_answered { Phase::Charging { held, until } } else { Phase::Claiming { indexed_date, token, until } }
        }
        None => match claim_refusal(&state.stored, token, indexed_date, today, state.now) {
            ClaimRefusal::OwnClaim => Phase::Charging { held: state.stored.clone(), until },
            ClaimRefusal::InDoubt(attempt) => Phase::TakingOver {
                attempt,
                token: unique_claim_token(model, state, worker),
                until: state.now + CHARGE_PERMISSION,
            },
            ClaimRefusal::DueOn(indexed_date) => Phase::Claiming {
                indexed_date,
                token: unique_claim_token(model, state, worker),
                until: state.now + CHARGE_PERMISSION,
            },
            ClaimRefusal::CancellationDue => Phase::RemovingFromIndex {
                before: state.stored.clone(),
                after: state.stored.cancel(today, state.now).subscription,
            },
            ClaimRefusal::NotChargeable => {
                let after = Subscription { next_payment_on: None, ..state.stored.clone() };
                Phase::RemovingFromIndex { before: state.stored.clone(), after }
            }
            ClaimRefusal::Leased
            | ClaimRefusal::NotDue
            | ClaimRefusal::DueLater { .. }
            | ClaimRefusal::AlreadyPaid
            | ClaimRefusal::Disputed
            | ClaimRefusal::OpenFinding => Phase::Idle,
        },
    };
    state.workers[worker].phase = phase;
}

/// Makes the next step of `worker`. `is_answered` states whether the worker gets the response to the request of this
/// step.
pub fn make_step(model: &SubscriptionModel, state: &mut State, worker: usize, is_answered: bool) {
    let Worker { phase, today } = std::mem::take(&mut state.workers[worker]);
    state.workers[worker].today = today;
    let next = match phase {
        Phase::Idle | Phase::Waiting { .. } => phase,
        Phase::Claiming { indexed_date, token, until } => {
            return request_claim(model, state, worker, indexed_date, token, until, is_answered);
        }
        Phase::RemovingFromIndex { before, after } => {
            if state.stored.version == before.version {
                state.write(after);
            }
            Phase::Idle
        }
        Phase::TakingOver { attempt, token, until } => {
            take_over_attempt(model, state, attempt, token, until, is_answered)
        }
        Phase::LookingUp { held, until } => look_up_payment(model, state, held, until),
        Phase::Charging { held, until } => send_charge(state, worker, held, until),
        Phase::KeyReused { held } => {
            let attempt = attempt_of(&held);
            match resolve_attempt_in_doubt(
                &held,
                attempt,
                &state.payments_created_at_or_after(attempt.claimed_at - LOOK_BACK),
                state.now,
            ) {
                InDoubtResolution::Settle(outcome) => settling_phase(&held, outcome),
                InDoubtResolution::Processing => Phase::Idle,
                InDoubtResolution::ChargeAgain => {
                    settling_phase(&held, AttemptOutcome::Rejected { code: "key_in_use".to_owned() })
                }
            }
        }
        Phase::Settling { stored, held, outcome } => {
            write_settlement(model, state, today, stored, held, outcome, is_answered)
        }
    };
    state.workers[worker].phase = next;
}

/// Returns the subscription after a take-over of `attempt`; `None` if the take-over is refused. The condition in this
/// function must agree with the table's condition expression for a take-over.
pub fn item_after_take_over(
    stored: &Subscription,
    attempt: &Attempt,
    token: ClaimToken,
    now: Instant,
) -> Option<Subscription> {
    let identity = |a: &Attempt| (a.no, a.claim_token, a.leased_until);
    let open = stored.attempt.as_ref().filter(|open| identity(open) == identity(attempt))?;
    let held = Attempt { claim_token: token, leased_until: now + LEASE, ..open.clone() };
    Some(Subscription { attempt: Some(held), ..stored.clone() })
}

/// Takes over the attempt in doubt `attempt`, or tries it again after a lost response. Returns the worker's next phase.
fn take_over_attempt(
    model: &SubscriptionModel,
    state: &mut State,
    attempt: Attempt,
    token: ClaimToken,
    until: Instant,
    is_answered: bool,
) -> Phase {
    let is_own_claim = |open: &Attempt| open.no == attempt.no && open.claim_token == token;
    if state.stored.attempt.as_ref().is_some_and(is_own_claim) {
        return Phase::LookingUp { held: state.stored.clone(), until };
    }
    let Some(mut held) = item_after_take_over(&state.stored, &attempt, token, state.now) else { return Phase::Idle };
    if let (Flaw::TakeOverRewritesAttemptAt, Some(open)) = (model.flaw, &mut held.attempt) {
        open.claimed_at = state.now;
    }
    state.write(held);
    let held = state.stored.clone();
    if is_answered { Phase::LookingUp { held, until } } else { Phase::TakingOver { attempt, token, until } }
}

/// Looks up the payment of the attempt that the worker holds. Returns the worker's next phase.
fn look_up_payment(model: &SubscriptionModel, state: &State, held: Subscription, until: Instant) -> Phase {
    let attempt = attempt_of(&held);
    let payments = match model.flaw {
        Flaw::NoLookUp => Vec::new(),
        _ => state.payments_created_at_or_after(attempt.claimed_at - LOOK_BACK),
    };
    match resolve_attempt_in_doubt(&held, attempt, &payments, state.now) {
        InDoubtResolution::Settle(outcome) => settling_phase(&held, outcome),
        InDoubtResolution::Processing => Phase::Idle,
        InDoubtResolution::ChargeAgain if model.flaw == Flaw::PermissionRenewedByLookUp => {
            Phase::Charging { held, until: state.now + CHARGE_PERMISSION }
        }
        InDoubtResolution::ChargeAgain => Phase::Charging { held, until },
    }
}

/// Sends the charge request of `worker`, unless the time `until` has passed. Returns the worker's next phase.
fn send_charge(state: &mut State, worker: usize, held: Subscription, until: Instant) -> Phase {
    if state.now >= until {
        return Phase::Idle;
    }
    let request = ChargeRequest::from_attempt(&held, attempt_of(&held));
    state.gateway.in_flight.push(RequestInFlight { sender: worker, sent_at: state.now, request });
    Phase::Waiting { held }
}

/// Delivers the gateway's response to the request `flight` to the worker that sent it, if the worker still waits for
/// it.
pub fn receive_response(_: &SubscriptionModel, state: &mut State, flight: &RequestInFlight, response: ChargeResponse) {
    let worker = &mut state.workers[flight.sender];
    let Phase::Waiting { held } = &worker.phase else { return };
    if ChargeRequest::from_attempt(held, attempt_of(held)) != flight.request {
        return;
    }
    worker.phase = match response {
        ChargeResponse::Succeeded(payment) => settling_phase(held, AttemptOutcome::Succeeded(payment)),
        ChargeResponse::Declined(decline) => settling_phase(held, AttemptOutcome::Declined(decline)),
        ChargeResponse::Rejected { code } => settling_phase(held, AttemptOutcome::Rejected { code }),
        ChargeResponse::KeyReused => Phase::KeyReused { held: held.clone() },
        ChargeResponse::Processing
        | ChargeResponse::Unknown { .. }
        | ChargeResponse::Inconclusive { .. }
        | ChargeResponse::Throttled { .. }
        | ChargeResponse::Unusable { .. } => Phase::Idle,
    };
}

/// Makes `worker` stop waiting for the gateway's response. The outcome of the charge is then unknown, and the attempt
/// stays open.
pub fn stop_waiting(model: &SubscriptionModel, state: &mut State, worker: usize) {
    let Phase::Waiting { held } = &state.workers[worker].phase else { return };
    state.workers[worker].phase = match model.flaw {
        Flaw::NewKeyInDoubt => settling_phase(held, AttemptOutcome::Rejected { code: "time_out".to_owned() }),
        _ => Phase::Idle,
    };
}

/// Writes the outcome of the attempt `held` to the subscription `stored`. Returns the worker's next phase.
fn write_settlement(
    model: &SubscriptionModel,
    state: &mut State,
    today: NaiveDate,
    mut stored: Subscription,
    mut held: Attempt,
    outcome: AttemptOutcome,
    is_answered: bool,
) -> Phase {
    let mut basis = stored.clone();
    if model.flaw == Flaw::RejectionSettledWithoutClaim {
        // Because of the broken rule, the settlement uses the claim token of the worker that now holds the claim.
        held.claim_token = basis.attempt.as_ref().map_or(held.claim_token, |open| open.claim_token);
    }
    if model.flaw == Flaw::SettleIgnoresStatus {
        basis.status = SubscriptionStatus::Active;
    }
    let Ok(settlement) = settle_open_attempt(&basis, &held, &outcome, &model.policy, today, state.now) else {
        return Phase::Idle;
    };
    if state.write_settlement(&stored, &settlement, model.flaw != Flaw::SettleUnconditionally) {
        return if is_answered { Phase::Idle } else { Phase::Settling { stored, held, outcome } };
    }
    if stored.version == state.stored.version {
        // The settlement was refused, although no concurrent write changed the subscription. So the receipt or the
        // attempt record of the settlement exists already.
        return Phase::Idle;
    }
    if model.flaw == Flaw::NoClaim {
        return Phase::Idle;
    }
    stored = state.stored.clone();
    Phase::Settling { stored, held, outcome }
}

/// Returns the phase in which the worker writes `outcome` for the attempt that it holds.
fn settling_phase(held: &Subscription, outcome: AttemptOutcome) -> Phase {
    Phase::Settling { stored: held.clone(), held: attempt_of(held).clone(), outcome }
}

/// Returns a new claim token. Written claims and take-overs always have different tokens, because the token contains
/// the version of the subscription, and each write increments the version.
fn unique_claim_token(model: &SubscriptionModel, state: &State, worker: usize) -> ClaimToken {
    let call = if model.flaw == Flaw::ClaimProvedByRun { 0 } else { state.stored.version };
    ClaimToken(Ulid::from_parts(call, u128::try_from(worker).unwrap()))
}

/// Returns the open attempt of `held`, a subscription that a worker has claimed or taken over.
fn attempt_of(held: &Subscription) -> &Attempt {
    held.attempt.as_ref().expect("the worker holds an open attempt")
}
