//! The invariants of the payment protocol, which must hold in every state of the subscription model.

use std::collections::BTreeMap;

use billing::{PaymentStatus, Period, SubscriptionStatus};
use chrono::{TimeDelta, Utc};
use stateright::Property;

use crate::gateway::GatewayDecision;
use crate::subscription_model::{State, SubscriptionModel};
use crate::worker::{self, Phase, Worker};

pub const CHARGED_ONCE: &str = "a month is charged at most once";
pub const CHARGE_NOT_LOST: &str = "a successful charge has a receipt, or its attempt is still open";
pub const RECEIPT_CORRECT: &str =
    "a receipt states the amount and due date of its charge, and the next due date is later";
pub const INDEX_CORRECT: &str =
    "the index contains exactly the subscriptions that are chargeable or have an open attempt";
pub const NO_MONTH_SKIPPED: &str = "no month is skipped";
pub const STOPPED_NOT_CLAIMED: &str = "a stopped, ending or unpaid subscription is not claimed";
pub const ALL_SETTLED_LATER: &str = "without further faults, every owed month is settled";

/// Returns all invariants, each with the function that checks it.
pub fn all_invariants() -> Vec<Property<SubscriptionModel>> {
    vec![
        Property::always(CHARGED_ONCE, |_, state| is_charged_once(state)),
        Property::always(CHARGE_NOT_LOST, |_, state| no_charge_is_lost(state)),
        Property::always(RECEIPT_CORRECT, |_, state| receipts_are_correct(state)),
        Property::always(INDEX_CORRECT, |_, state| index_is_correct(state)),
        Property::always(NO_MONTH_SKIPPED, |_, state| no_month_is_skipped(state)),
        Property::always(STOPPED_NOT_CLAIMED, |_, state: &State| state.violation.is_none()),
        Property::always(ALL_SETTLED_LATER, settles_without_faults),
    ]
}

fn is_charged_once(state: &State) -> bool {
    let mut by_month: BTreeMap<Period, u32> = BTreeMap::new();
    for payment in succeeded_payments(state) {
        *by_month.entry(Period::from_day(payment.due_on)).or_default() += 1;
    }
    by_month.values().all(|count| *count == 1)
}

fn no_charge_is_lost(state: &State) -> bool {
    succeeded_payments(state).all(|payment| {
        let is_receipted = state.receipts.get(&payment.due_on).is_some_and(|(_, id)| *id == payment.id.to_string());
        is_receipted || state.stored.attempt.as_ref().is_some_and(|attempt| attempt.due_on == payment.due_on)
    })
}

fn receipts_are_correct(state: &State) -> bool {
    state.receipts.iter().all(|(due_on, (amount, id))| {
        let paid = succeeded_payments(state).find(|payment| payment.id.to_string() == *id);
        paid.is_some_and(|payment| payment.amount == *amount && payment.due_on == *due_on)
            && state.stored.due_on > *due_on
    })
}

fn index_is_correct(state: &State) -> bool {
    let stored = &state.stored;
    stored.next_payment_on.is_some() == (stored.attempt.is_some() || stored.status.is_chargeable())
}

fn no_month_is_skipped(state: &State) -> bool {
    let first = Period::from_day(state.stored.first_due_on);
    let months = std::iter::successors(Some(first), |period| Some(period.next()));
    let is_paid = |period: &Period| state.receipts.keys().any(|due_on| Period::from_day(*due_on) == *period);
    months
        .take_while(|period| *period < Period::from_day(state.stored.due_on))
        .all(|period| is_paid(&period) || state.waived.contains(&period))
}

/// Returns whether every owed month is settled within twelve days if no more faults occur: the workers of `state` stop,
/// a new worker runs every day, and every charge succeeds.
fn settles_without_faults(model: &SubscriptionModel, state: &State) -> bool {
    let mut later = State { workers: vec![Worker::default()], ..state.clone() };
    later.gateway.in_flight.clear();
    for existing in &mut later.gateway.payments {
        if existing.payment.status == PaymentStatus::Processing {
            existing.payment.status = PaymentStatus::Succeeded;
        }
    }
    later.now += TimeDelta::minutes(30);
    for _ in 0..12 {
        if is_settled(&later) {
            return is_charged_once(&later)
                && no_charge_is_lost(&later)
                && receipts_are_correct(&later)
                && no_month_is_skipped(&later)
                && index_is_correct(&later);
        }
        sweep_without_faults(model, &mut later);
        let tomorrow = later.today().succ_opt().and_then(|day| day.and_hms_opt(6, 0, 0)).expect("a day");
        later.now = tomorrow.and_local_timezone(Utc).unwrap();
    }
    false
}

/// Returns whether no attempt is open, no month is owed, and the subscription is not past due.
fn is_settled(state: &State) -> bool {
    let stored = &state.stored;
    let is_owed = stored.status.is_chargeable() && stored.due_on <= state.today();
    stored.attempt.is_none() && !is_owed && stored.status != SubscriptionStatus::PastDue
}

/// Runs worker 0 until it is idle, if the subscription's date in the index has been reached. Every charge succeeds, and
/// every response arrives.
fn sweep_without_faults(model: &SubscriptionModel, state: &mut State) {
    let Some(indexed_date) = state.stored.next_payment_on.filter(|indexed_date| *indexed_date <= state.today()) else {
        return;
    };
    worker::claim_payment(model, state, 0, indexed_date, true);
    while state.workers[0].phase != Phase::Idle {
        worker::make_step(model, state, 0, true);
        if let Some(flight) = state.gateway.in_flight.pop() {
            let response = state.gateway.accept_charge(&flight.request, GatewayDecision::Succeeds, state.now);
            worker::receive_response(model, state, &flight, response);
        }
    }
}

/// Returns the successful payments of the gateway.
fn succeeded_payments(state: &State) -> impl Iterator<Item = &billing::Payment> {
    let payments = state.gateway.payments.iter().map(|existing| &existing.payment);
    payments.filter(|payment| payment.status == PaymentStatus::Succeeded)
}
