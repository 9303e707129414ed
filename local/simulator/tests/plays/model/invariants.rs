//! What must hold in every state, and what every state must lead to.

use std::collections::BTreeMap;

use billing::{PaymentStatus, Period, Status};
use chrono::{TimeDelta, Utc};
use stateright::Property;

use crate::model::gateway::Reason;
use crate::model::life::{Life, State};
use crate::model::worker::{self, Phase, Worker};

pub const ONCE: &str = "a month is charged once at most";
pub const KEPT: &str = "a charge that succeeded is receipted, or its attempt is still open";
pub const STATED: &str = "a receipt states what was charged, and the subscription is beyond it";
pub const FOUND: &str = "what is owed or open is in the index, and nothing else is";
pub const OWED: &str = "no month is passed over";
pub const STOPPED: &str = "what is stopped, ending or unpaid is not claimed";
pub const SETTLED: &str = "from here on, with the gateway answering, all that is owed is settled";

pub fn all() -> Vec<Property<Life>> {
    vec![
        Property::always(ONCE, |_, state| once(state)),
        Property::always(KEPT, |_, state| kept(state)),
        Property::always(STATED, |_, state| stated(state)),
        Property::always(FOUND, |_, state| found(state)),
        Property::always(OWED, |_, state| owed(state)),
        Property::always(STOPPED, |_, state: &State| state.misdeed.is_none()),
        Property::always(SETTLED, settles),
    ]
}

fn once(state: &State) -> bool {
    let mut by_month: BTreeMap<Period, u32> = BTreeMap::new();
    for made in succeeded(state) {
        *by_month.entry(Period::of(made.due_on)).or_default() += 1;
    }
    by_month.values().all(|count| *count == 1)
}

fn kept(state: &State) -> bool {
    succeeded(state).all(|payment| {
        let is_receipted = state.receipts.get(&payment.due_on).is_some_and(|(_, id)| *id == payment.id.to_string());
        is_receipted || state.stored.attempt.as_ref().is_some_and(|attempt| attempt.due_on == payment.due_on)
    })
}

fn stated(state: &State) -> bool {
    state.receipts.iter().all(|(due_on, (amount, id))| {
        let paid = succeeded(state).find(|payment| payment.id.to_string() == *id);
        paid.is_some_and(|payment| payment.amount == *amount && payment.due_on == *due_on)
            && state.stored.due_on > *due_on
    })
}

fn found(state: &State) -> bool {
    let stored = &state.stored;
    stored.next_payment_on.is_some() == (stored.attempt.is_some() || stored.status.is_chargeable())
}

fn owed(state: &State) -> bool {
    let first = Period::of(state.stored.first_due_on);
    let months = std::iter::successors(Some(first), |period| Some(period.next()));
    let is_paid = |period: &Period| state.receipts.keys().any(|due_on| Period::of(*due_on) == *period);
    months
        .take_while(|period| *period < Period::of(state.stored.due_on))
        .all(|period| is_paid(&period) || state.waived.contains(&period))
}

/// Plays on without a fault: the workers are gone, one comes every day, and every charge succeeds.
fn settles(life: &Life, state: &State) -> bool {
    let mut calm = State { workers: vec![Worker::default()], ..state.clone() };
    calm.gateway.in_flight.clear();
    for made in &mut calm.gateway.made {
        if made.payment.status == PaymentStatus::Processing {
            made.payment.status = PaymentStatus::Succeeded;
        }
    }
    calm.now += TimeDelta::minutes(30);
    for _ in 0..12 {
        if is_settled(&calm) {
            return once(&calm) && kept(&calm) && stated(&calm) && owed(&calm) && found(&calm);
        }
        sweep(life, &mut calm);
        let tomorrow = calm.today().succ_opt().and_then(|day| day.and_hms_opt(6, 0, 0)).expect("a day");
        calm.now = tomorrow.and_local_timezone(Utc).unwrap();
    }
    false
}

fn is_settled(state: &State) -> bool {
    let stored = &state.stored;
    let is_owed = stored.status.is_chargeable() && stored.due_on <= state.today();
    stored.attempt.is_none() && !is_owed && stored.status != Status::PastDue
}

fn sweep(life: &Life, state: &mut State) {
    let Some(seen) = state.stored.next_payment_on.filter(|seen| *seen <= state.today()) else { return };
    worker::claim(life, state, 0, seen, true);
    while state.workers[0].phase != Phase::Idle {
        worker::step(life, state, 0, true);
        if let Some(flight) = state.gateway.in_flight.pop() {
            let answer = state.gateway.accept(&flight.request, Reason::Succeeds, state.now);
            worker::answered(life, state, &flight, answer);
        }
    }
}

fn succeeded(state: &State) -> impl Iterator<Item = &billing::Payment> {
    let payments = state.gateway.made.iter().map(|made| &made.payment);
    payments.filter(|payment| payment.status == PaymentStatus::Succeeded)
}
