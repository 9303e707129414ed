//! A state machine model of one subscription: the stored item, the gateway, and the steps of the workers.
//!
//! The production functions of `billing` make every decision. The model contains only their environment: conditional
//! writes, requests in flight, workers that crash at any step, leases that expire, a customer, and time. The model does
//! not contain the kill switch (with which an operator stops all charges), the daily ceilings for charges, and
//! the command `dueday resolve`, with which an operator settles an open attempt.

use std::collections::{BTreeMap, BTreeSet};

use billing::{CatchUp, LeadDays, Money, Payment, PaymentStatus, Period, Policy, Settlement, Subscription};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use sandbox::rules::IDEMPOTENCY_KEY_LIFETIME;
use stateright::{Model, Property};
use testkit::sample_subscription;

use crate::customer::{self, CustomerAction};
use crate::flaw::Flaw;
use crate::gateway::{Gateway, GatewayDecision};
use crate::invariants;
use crate::worker::{self, Phase, Worker};

/// The duration of the lease of a claim.
pub const LEASE: TimeDelta = TimeDelta::minutes(20);

/// The explored system and the bounds of the exploration.
#[derive(Clone, Debug)]
pub struct SubscriptionModel {
    /// The instants to which the clock advances, in this order. Each action happens at one of these instants.
    pub instants: Vec<DateTime<Utc>>,
    /// The subscription in the first state.
    pub subscription: Subscription,
    pub policy: Policy,
    /// The number of workers.
    pub workers: usize,
    /// The maximum time between the sending of a charge request and its arrival at the gateway. A worker may send the
    /// request until five minutes after the claim. If the request then takes at most ten minutes, it arrives before the
    /// lease of twenty minutes expires, even if the clocks differ by a few minutes.
    pub max_delay: TimeDelta,
    /// The decisions that the gateway may make about a charge.
    pub decisions: Vec<GatewayDecision>,
    /// The actions that the customer may take.
    pub customer_actions: Vec<CustomerAction>,
    /// The maximum number of customer actions.
    pub max_customer_actions: u8,
    /// The rule of the protocol that the model breaks on purpose, if any.
    pub flaw: Flaw,
}

/// The state of the modelled system at one moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub now: DateTime<Utc>,
    /// The subscription in the table.
    pub stored: Subscription,
    /// All due dates that the index has ever shown. The index may be stale, so it may still show each of these dates,
    /// or no date.
    pub shown: BTreeSet<NaiveDate>,
    /// The amount and the payment id on the receipt of each due date.
    pub receipts: BTreeMap<NaiveDate, (Money, String)>,
    /// The due date and the attempt number of each stored attempt record.
    pub records: BTreeSet<(NaiveDate, u32)>,
    /// The months that were waived, that is, will never be charged.
    pub waived: BTreeSet<Period>,
    pub workers: Vec<Worker>,
    pub gateway: Gateway,
    pub customer_actions_left: u8,
    /// Whether the customer has paused or cancelled the subscription, and has not resumed it since.
    pub is_stopped: bool,
    /// A description of a forbidden step that a worker made; `None` if there was no such step.
    pub violation: Option<&'static str>,
}

/// A step of the modelled system.
#[derive(Clone, PartialEq, Debug)]
pub enum ModelAction {
    /// A worker claims the payment of the due date `indexed_date`, which the index shows. If the response is lost
    /// (`is_answered` is false), the worker repeats the request later.
    Claim { worker: usize, indexed_date: NaiveDate, is_answered: bool },
    /// A worker waives the months that were not charged because of an outage. Only the latest month stays owed.
    SkipMissed,
    /// A worker makes its next step. If the response is lost (`is_answered` is false), the worker repeats the request
    /// later.
    Step { worker: usize, is_answered: bool },
    /// A worker stops waiting for the response of the gateway.
    TimeOut { worker: usize },
    /// A worker crashes.
    Crash { worker: usize },
    /// A charge request arrives at the gateway.
    Accept { flight: usize, decision: GatewayDecision },
    /// A payment that is processing gets its final status.
    Resolve { payment: usize, status: PaymentStatus },
    /// The gateway forgets the idempotency key of a payment.
    ForgetKey { payment: usize },
    /// The customer makes a change, such as a pause or a new card.
    Customer(CustomerAction),
    /// The clock advances to the next instant. Leases expire, and requests that are too old are lost.
    Advance,
}

impl SubscriptionModel {
    /// Creates a model of a subscription with payment day 31 and two workers. The model has four instants:
    ///
    /// - the first due date;
    /// - 30 minutes later, when the lease of a claim has expired;
    /// - one day after the due date, when the gateway may have forgotten the idempotency key;
    /// - three days after the due date, when an attempt without a payment is settled as rejected.
    pub fn new() -> Self {
        Self {
            instants: parse_instants(&[
                "2026-01-31T06:00:00Z",
                "2026-01-31T06:30:00Z",
                "2026-02-01T07:00:00Z",
                "2026-02-03T07:00:00Z",
            ]),
            subscription: sample_subscription(31, "2026-01-10".parse().unwrap()),
            policy: Policy { dunning: "1".parse().unwrap(), lead: LeadDays::default(), ..Policy::default() },
            workers: 2,
            max_delay: TimeDelta::minutes(10),
            decisions: vec![GatewayDecision::Succeeds, GatewayDecision::DeclinesSoftly],
            customer_actions: Vec::new(),
            max_customer_actions: 0,
            flaw: Flaw::None,
        }
    }
}

/// Parses instants such as `2026-01-31T06:00:00Z`.
pub fn parse_instants(texts: &[&str]) -> Vec<DateTime<Utc>> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

impl State {
    /// Returns the UTC date of the current instant.
    pub fn today(&self) -> NaiveDate {
        self.now.date_naive()
    }

    /// Stores `next`, and increments the version, as every write to the table does.
    pub fn write(&mut self, next: Subscription) {
        self.stored = Subscription { version: self.stored.version + 1, ..next };
        self.shown.extend(self.stored.next_payment_on);
    }

    /// Writes a settlement that was computed from the subscription `before`, as one transaction. Returns whether the
    /// transaction was made. If `is_conditional` is false, the transaction has no conditions and is always made.
    pub fn write_settlement(&mut self, before: &Subscription, settlement: &Settlement, is_conditional: bool) -> bool {
        let receipt = settlement.receipt.as_ref().map(|r| (r.due_on, (r.amount, r.payment.to_string())));
        let record = settlement.record.as_ref().map(|record| (record.due_on, record.attempt_no));
        let already_exists = receipt.as_ref().is_some_and(|(due_on, _)| self.receipts.contains_key(due_on))
            || record.is_some_and(|record| self.records.contains(&record));
        if is_conditional && (self.stored.version != before.version || already_exists) {
            return false;
        }
        self.receipts.extend(receipt);
        self.records.extend(record);
        self.waived.extend(settlement.waived.iter().map(|waived| Period::from_day(waived.due_on)));
        self.write(settlement.subscription.clone());
        true
    }

    /// Returns the gateway's payments that were created at `since` or later.
    pub fn payments_created_at_or_after(&self, since: DateTime<Utc>) -> Vec<Payment> {
        let existing = self.gateway.payments.iter().filter(|existing| existing.payment.created_at >= since);
        existing.map(|existing| existing.payment.clone()).collect()
    }
}

impl Model for SubscriptionModel {
    type State = State;
    type Action = ModelAction;

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
            customer_actions_left: self.max_customer_actions,
            is_stopped: false,
            violation: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<ModelAction>) {
        for (worker, Worker { phase, .. }) in state.workers.iter().enumerate() {
            match phase {
                Phase::Idle => {
                    let due = state.shown.iter().filter(|indexed_date| **indexed_date <= state.today());
                    for (&indexed_date, is_answered) in
                        due.flat_map(|indexed_date| [(indexed_date, true), (indexed_date, false)])
                    {
                        actions.push(ModelAction::Claim { worker, indexed_date, is_answered });
                    }
                }
                Phase::Waiting { .. } => {
                    actions.extend([ModelAction::TimeOut { worker }, ModelAction::Crash { worker }])
                }
                _ => {
                    actions.extend([true, false].map(|is_answered| ModelAction::Step { worker, is_answered }));
                    actions.push(ModelAction::Crash { worker });
                }
            }
        }
        for flight in 0..state.gateway.in_flight.len() {
            actions.extend(self.decisions.iter().map(|&decision| ModelAction::Accept { flight, decision }));
        }
        for (payment, existing) in state.gateway.payments.iter().enumerate() {
            if existing.payment.status == PaymentStatus::Processing {
                let outcomes = [PaymentStatus::Succeeded, GatewayDecision::DeclinesSoftly.status()];
                actions.extend(outcomes.map(|status| ModelAction::Resolve { payment, status }));
            }
            if self.flaw == Flaw::DeclineNotCancelled && matches!(existing.payment.status, PaymentStatus::Declined(_)) {
                actions.push(ModelAction::Resolve { payment, status: PaymentStatus::Succeeded });
            }
            if !existing.is_forgotten && state.now - existing.payment.created_at >= IDEMPOTENCY_KEY_LIFETIME {
                actions.push(ModelAction::ForgetKey { payment });
            }
        }
        if state.customer_actions_left > 0 {
            actions.extend(self.customer_actions.iter().map(|&action| ModelAction::Customer(action)));
        }
        if self.policy.catch_up == CatchUp::Latest {
            actions.push(ModelAction::SkipMissed);
        }
        actions.push(ModelAction::Advance);
    }

    fn next_state(&self, last: &State, action: ModelAction) -> Option<State> {
        let mut next = last.clone();
        match action {
            ModelAction::Claim { worker, indexed_date, is_answered } => {
                worker::claim_payment(self, &mut next, worker, indexed_date, is_answered)
            }
            ModelAction::Step { worker, is_answered } => worker::make_step(self, &mut next, worker, is_answered),
            ModelAction::TimeOut { worker } => worker::stop_waiting(self, &mut next, worker),
            ModelAction::Crash { worker } => next.workers[worker] = Worker::default(),
            ModelAction::SkipMissed => {
                let waivers = self.policy.catch_up.waive_months_of_outage(&next.stored, next.today(), next.now)?;
                let before = next.stored.clone();
                next.write_settlement(&before, &waivers, true);
            }
            ModelAction::Accept { flight, decision } => {
                let flight = next.gateway.in_flight.remove(flight);
                let response = next.gateway.accept_charge(&flight.request, decision, next.now);
                worker::receive_response(self, &mut next, &flight, response);
            }
            ModelAction::Resolve { payment, status } => next.gateway.payments[payment].payment.status = status,
            ModelAction::ForgetKey { payment } => next.gateway.payments[payment].is_forgotten = true,
            ModelAction::Customer(action) => customer::apply_customer_action(self, &mut next, action)?,
            ModelAction::Advance => {
                next.now = *self.instants.iter().find(|instant| **instant > last.now)?;
                let now = next.now;
                next.gateway.in_flight.retain(|flight| now - flight.sent_at < self.max_delay);
            }
        }
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        invariants::all_invariants()
    }
}
