//! The life of one subscription as a state machine: what is stored, what the gateway knows, where two workers stand.
//!
//! Every decision is the domain's own function. What is modelled is only what lies around it: conditional writes, requests
//! under way, workers that end anywhere, leases that lapse, a customer, and time. Not here: the kill switch, ceilings, and
//! what is resolved by hand.

use std::collections::{BTreeMap, BTreeSet};

use billing::{CatchUp, LeadDays, Money, Payment, PaymentStatus, Period, Policy, Settlement, Subscription};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use gateways::KEY_LIFE;
use stateright::{Model, Property};
use testkit::sample;

use crate::model::customer::{self, Act};
use crate::model::flaw::Flaw;
use crate::model::gateway::{Gateway, Reason};
use crate::model::invariants;
use crate::model::worker::{self, Phase, Worker};

/// How long a claim keeps others away.
pub const LEASE: TimeDelta = TimeDelta::minutes(20);

/// What is explored, and within which bounds.
#[derive(Clone, Debug)]
pub struct Life {
    /// The instants at which anything happens.
    pub instants: Vec<DateTime<Utc>>,
    pub subscription: Subscription,
    pub policy: Policy,
    pub workers: usize,
    /// How long a request may be under way before it arrives. What is permitted for five minutes and may be under way
    /// for ten has arrived when a lease of twenty lapses, on clocks that agree within minutes.
    pub max_delay: TimeDelta,
    /// How the gateway may answer a charge.
    pub verdicts: Vec<Reason>,
    /// What the customer may do, and how often in all.
    pub acts: Vec<Act>,
    pub max_acts: u8,
    /// What is left out of the protocol on purpose.
    pub flaw: Flaw,
}

/// Everything there is at one moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub now: DateTime<Utc>,
    pub stored: Subscription,
    /// Dates that the index has ever shown: it may show any of them late, or nothing.
    pub shown: BTreeSet<NaiveDate>,
    /// The amount and the payment of each due date that has a receipt.
    pub receipts: BTreeMap<NaiveDate, (Money, String)>,
    pub records: BTreeSet<(NaiveDate, u32)>,
    /// Months that are waived, or fell due in a pause.
    pub waived: BTreeSet<Period>,
    pub workers: Vec<Worker>,
    pub gateway: Gateway,
    pub acts_left: u8,
    /// The customer has paused or cancelled, and not resumed.
    pub is_stopped: bool,
    /// What has been done that must never be.
    pub misdeed: Option<&'static str>,
}

/// What may happen next.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A worker claims what the index showed it, and gets the answer or has to ask again.
    Claim {
        worker: usize,
        seen: NaiveDate,
        is_answered: bool,
    },
    /// Months that an outage has missed are waived.
    SkipMissed,
    /// A worker takes its next step, and gets the answer or has to ask again.
    Step {
        worker: usize,
        is_answered: bool,
    },
    /// A worker waits for the gateway no longer.
    TimeOut {
        worker: usize,
    },
    /// A worker ends where it stands.
    Crash {
        worker: usize,
    },
    /// A request arrives at the gateway.
    Accept {
        flight: usize,
        verdict: Reason,
    },
    /// A payment under way ends.
    Resolve {
        payment: usize,
        status: PaymentStatus,
    },
    /// The gateway forgets the key of a payment.
    ForgetKey {
        payment: usize,
    },
    Customer(Act),
    /// Time passes: leases lapse, and requests that are too old are lost.
    Advance,
}

impl Life {
    /// A payment on the 31st, from its first due date on: a lease later, a day later when keys may be forgotten, and two
    /// days later when what the gateway does not know is given up. Two workers, and nobody else.
    pub fn new() -> Self {
        Self {
            instants: instants(&[
                "2026-01-31T06:00:00Z",
                "2026-01-31T06:30:00Z",
                "2026-02-01T07:00:00Z",
                "2026-02-03T07:00:00Z",
            ]),
            subscription: sample::subscription(31, "2026-01-10".parse().unwrap()),
            policy: Policy { dunning: "1".parse().unwrap(), lead: LeadDays::default(), ..Policy::default() },
            workers: 2,
            max_delay: TimeDelta::minutes(10),
            verdicts: vec![Reason::Succeeds, Reason::DeclinesSoftly],
            acts: Vec::new(),
            max_acts: 0,
            flaw: Flaw::None,
        }
    }
}

pub fn instants(texts: &[&str]) -> Vec<DateTime<Utc>> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

impl State {
    pub fn today(&self) -> NaiveDate {
        self.now.date_naive()
    }

    /// Writes `next`, with the version that every write raises.
    pub fn write(&mut self, next: Subscription) {
        self.stored = Subscription { version: self.stored.version + 1, ..next };
        self.shown.extend(self.stored.next_payment_on);
    }

    /// Writes a settlement computed from `before`, in one transaction; answers whether its conditions held.
    pub fn settle(&mut self, before: &Subscription, settlement: &Settlement, is_conditional: bool) -> bool {
        let receipt = settlement.receipt.as_ref().map(|r| (r.due_on, (r.amount, r.payment.to_string())));
        let record = settlement.record.as_ref().map(|record| (record.due_on, record.attempt_no));
        let is_there = receipt.as_ref().is_some_and(|(due_on, _)| self.receipts.contains_key(due_on))
            || record.is_some_and(|record| self.records.contains(&record));
        if is_conditional && (self.stored.version != before.version || is_there) {
            return false;
        }
        self.receipts.extend(receipt);
        self.records.extend(record);
        self.waived.extend(settlement.waived.iter().map(|waived| Period::of(waived.due_on)));
        self.write(settlement.subscription.clone());
        true
    }

    /// What the gateway knows of the payments since an instant.
    pub fn known_since(&self, since: DateTime<Utc>) -> Vec<Payment> {
        let made = self.gateway.made.iter().filter(|made| made.payment.created_at >= since);
        made.map(|made| made.payment.clone()).collect()
    }
}

impl Model for Life {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: self.instants[0],
            stored: self.subscription.clone(),
            shown: self.subscription.next_payment_on.into_iter().collect(),
            receipts: BTreeMap::new(),
            records: BTreeSet::new(),
            waived: BTreeSet::new(),
            workers: vec![Worker::default(); self.workers],
            gateway: Gateway::default(),
            acts_left: self.max_acts,
            is_stopped: false,
            misdeed: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (worker, Worker { phase, .. }) in state.workers.iter().enumerate() {
            match phase {
                Phase::Idle => {
                    let due = state.shown.iter().filter(|seen| **seen <= state.today());
                    for (&seen, is_answered) in due.flat_map(|seen| [(seen, true), (seen, false)]) {
                        actions.push(Action::Claim { worker, seen, is_answered });
                    }
                }
                Phase::Waiting { .. } => actions.extend([Action::TimeOut { worker }, Action::Crash { worker }]),
                _ => {
                    actions.extend([true, false].map(|is_answered| Action::Step { worker, is_answered }));
                    actions.push(Action::Crash { worker });
                }
            }
        }
        for flight in 0..state.gateway.in_flight.len() {
            actions.extend(self.verdicts.iter().map(|&verdict| Action::Accept { flight, verdict }));
        }
        for (payment, made) in state.gateway.made.iter().enumerate() {
            if made.payment.status == PaymentStatus::Processing {
                let ends = [PaymentStatus::Succeeded, Reason::DeclinesSoftly.status()];
                actions.extend(ends.map(|status| Action::Resolve { payment, status }));
            }
            if self.flaw == Flaw::DeclineNotCancelled && matches!(made.payment.status, PaymentStatus::Declined(_)) {
                actions.push(Action::Resolve { payment, status: PaymentStatus::Succeeded });
            }
            if !made.is_forgotten && state.now - made.payment.created_at >= KEY_LIFE {
                actions.push(Action::ForgetKey { payment });
            }
        }
        if state.acts_left > 0 {
            actions.extend(self.acts.iter().map(|&act| Action::Customer(act)));
        }
        if self.policy.catch_up == CatchUp::Latest {
            actions.push(Action::SkipMissed);
        }
        actions.push(Action::Advance);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        match action {
            Action::Claim { worker, seen, is_answered } => worker::claim(self, &mut next, worker, seen, is_answered),
            Action::Step { worker, is_answered } => worker::step(self, &mut next, worker, is_answered),
            Action::TimeOut { worker } => worker::time_out(self, &mut next, worker),
            Action::Crash { worker } => next.workers[worker] = Worker::default(),
            Action::SkipMissed => {
                let skip = self.policy.catch_up.skip(&next.stored, next.today(), next.now)?;
                let before = next.stored.clone();
                next.settle(&before, &skip, true);
            }
            Action::Accept { flight, verdict } => {
                let flight = next.gateway.in_flight.remove(flight);
                let answer = next.gateway.accept(&flight.request, verdict, next.now);
                worker::answered(self, &mut next, &flight, answer);
            }
            Action::Resolve { payment, status } => next.gateway.made[payment].payment.status = status,
            Action::ForgetKey { payment } => next.gateway.made[payment].is_forgotten = true,
            Action::Customer(act) => customer::act(self, &mut next, act)?,
            Action::Advance => {
                next.now = *self.instants.iter().find(|instant| **instant > last.now)?;
                let now = next.now;
                next.gateway.in_flight.retain(|flight| now - flight.sent_at < self.max_delay);
            }
        }
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        invariants::all()
    }
}
