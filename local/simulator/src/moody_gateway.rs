//! A gateway as gateways are: it answers 500 again to a key that it has failed with, 409 and 429, accepts what was given
//! up minutes ago, says of a payment what is not so, and finds out later that what it declined was paid after all.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Money, Payment, PaymentStatus};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use emulator::Injector;
use gateways::{ChargeAnswer, ChargeRequest, GatewayError, PaymentGateway, Sandbox};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use testkit::Faulty;

use crate::calendar::month_of;
use crate::oracle::Oracle;
use crate::played_gateway::PlayedGateway;
use crate::schedule::{Schedule, Turns};

/// What was given up is accepted at most this much later.
const LATEST_SECONDS: i64 = 180;

/// The gateway, whoever speaks to it.
pub struct MoodyGateway {
    sandbox: Arc<Sandbox>,
    clock: Arc<SimulatedClock>,
    schedule: Schedule,
    oracle: Arc<Mutex<Oracle>>,
    moods: Mutex<Moods>,
}

struct Moods {
    rng: ChaCha8Rng,
    /// Of a thousand requests so many are answered oddly.
    oddities: u32,
    /// Keys that are answered 500, until then.
    failed_keys: HashMap<String, DateTime<Utc>>,
    busy_until: Option<DateTime<Utc>>,
    /// Requests that were given up and are still to be accepted.
    late: BTreeMap<(DateTime<Utc>, u64), ChargeRequest>,
    late_given: u64,
    /// Payments that were declined, and were paid after all.
    paid_after_all: HashSet<GatewayToken>,
}

/// What a charge meets with.
enum Mood {
    Good,
    Busy,
    Unknown(&'static str),
    GivenUp,
    PaidAfterAll,
    Contradicts,
}

impl MoodyGateway {
    pub fn new(
        sandbox: Arc<Sandbox>,
        clock: Arc<SimulatedClock>,
        schedule: Schedule,
        oracle: Arc<Mutex<Oracle>>,
        (seed, oddities): (u64, u32),
    ) -> Self {
        let moods = Moods {
            rng: ChaCha8Rng::seed_from_u64(seed),
            oddities,
            failed_keys: HashMap::new(),
            busy_until: None,
            late: BTreeMap::new(),
            late_given: 0,
            paid_after_all: HashSet::new(),
        };
        Self { sandbox, clock, schedule, oracle, moods: Mutex::new(moods) }
    }

    fn moods(&self) -> MutexGuard<'_, Moods> {
        self.moods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts what was given up and has arrived by now.
    fn accept_late(&self) {
        let now = self.clock.now();
        loop {
            let arrived = {
                let mut moods = self.moods();
                let first = moods.late.first_entry().filter(|first| first.key().0 <= now);
                first.map(|first| first.remove())
            };
            let Some(request) = arrived else { return };
            self.schedule.note(&format!("late {}", request.idempotency_key));
            self.accept(&request, 0);
        }
    }

    /// The sandbox's answer, of which the oracle learns.
    fn accept(&self, request: &ChargeRequest, actor: u64) -> ChargeAnswer {
        let now = self.clock.now();
        let answer = self.sandbox.charge_at(request, now);
        let answer = answer.unwrap_or_else(|error| ChargeAnswer::Unknown { reason: error.to_string() });
        let mut made = self.payments(&request.payment_method.customer, now).into_iter();
        let made =
            made.rfind(|made| made.subscription == request.subscription && made.attempt_no == request.attempt_no);
        if matches!(answer, ChargeAnswer::Rejected { .. } | ChargeAnswer::KeyReused) {
            self.oracle().rejected(request);
        }
        if let Some(made) = made {
            self.oracle().made(actor, now, &made, request.payment_method.payment_method.as_str());
        }
        answer
    }

    /// All payments of `customer` since an instant, as they stand now.
    fn payments(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Vec<Payment> {
        let payments = self.sandbox.payments_at(customer, since, self.clock.now()).unwrap_or_default();
        let moods = self.moods();
        let as_known = |payment: Payment| match moods.paid_after_all.contains(&payment.id) {
            true => Payment { status: PaymentStatus::Succeeded, ..payment },
            false => payment,
        };
        payments.into_iter().map(as_known).collect()
    }

    /// The declined payment of the month that `request` pays again, if there is one.
    fn declined_before(&self, request: &ChargeRequest) -> Option<Payment> {
        let of_month = |payment: &Payment| {
            payment.subscription == request.subscription
                && month_of(payment.due_on) == month_of(request.due_on)
                && payment.attempt_no < request.attempt_no
                && matches!(payment.status, PaymentStatus::Declined(_))
        };
        self.payments(&request.payment_method.customer, DateTime::UNIX_EPOCH).into_iter().rfind(of_month)
    }

    fn mood(&self, request: &ChargeRequest) -> Mood {
        let now = self.clock.now();
        let mut moods = self.moods();
        if moods.busy_until.is_some_and(|until| now < until) {
            return Mood::Busy;
        }
        if moods.failed_keys.get(&request.idempotency_key).is_some_and(|until| now < *until) {
            return Mood::Unknown("500");
        }
        let oddities = moods.oddities;
        if self.schedule.is_calm() || !moods.rng.random_ratio(oddities, 1_000) {
            return Mood::Good;
        }
        match moods.rng.random_range(0..12) {
            0..2 => {
                let until = now + TimeDelta::minutes(moods.rng.random_range(1..=60 * 26));
                moods.failed_keys.insert(request.idempotency_key.clone(), until);
                Mood::Unknown("500")
            }
            2 => Mood::Unknown("409"),
            3 => {
                moods.busy_until = Some(now + TimeDelta::minutes(moods.rng.random_range(1..=20)));
                Mood::Busy
            }
            4..7 => Mood::GivenUp,
            7..10 => Mood::PaidAfterAll,
            _ => Mood::Contradicts,
        }
    }

    fn charge(&self, request: &ChargeRequest, actor: u64) -> ChargeAnswer {
        self.oracle().asked(self.clock.now(), request);
        let unknown = |reason: &str| ChargeAnswer::Unknown { reason: reason.to_owned() };
        match self.mood(request) {
            Mood::Good => self.accept(request, actor),
            Mood::Busy => ChargeAnswer::Throttled { retry_after: Some(Duration::ZERO) },
            Mood::Unknown(reason) => unknown(reason),
            Mood::GivenUp => {
                let mut moods = self.moods();
                let arrives_at = self.clock.now() + TimeDelta::seconds(moods.rng.random_range(30..=LATEST_SECONDS));
                moods.late_given += 1;
                let number = moods.late_given;
                moods.late.insert((arrives_at, number), request.clone());
                unknown("timed out")
            }
            Mood::PaidAfterAll => {
                if let Some(payment) = self.declined_before(request) {
                    self.moods().paid_after_all.insert(payment.id.clone());
                    let paid = Payment { status: PaymentStatus::Succeeded, ..payment };
                    self.oracle().known(self.clock.now(), &[paid]);
                }
                unknown("connection reset")
            }
            Mood::Contradicts => match self.accept(request, actor) {
                ChargeAnswer::Succeeded(payment) => ChargeAnswer::Succeeded(contradicted(payment)),
                answer => answer,
            },
        }
    }
}

/// `payment` as a gateway would say it that takes it for another.
fn contradicted(payment: Payment) -> Payment {
    let amount = Money::new(payment.amount.minor() + 100, payment.amount.currency());
    Payment { amount, ..payment }
}

impl fmt::Debug for MoodyGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MoodyGateway")
    }
}

impl PlayedGateway for MoodyGateway {
    fn for_process(self: Arc<Self>, turns: Arc<Turns>, injector: Arc<Injector>) -> Arc<dyn PaymentGateway> {
        Arc::new(Faulty::new(Arc::new(GatewayOf { gateway: self, turns }), injector))
    }

    fn make_late_payments(&self) {
        self.accept_late();
    }

    fn next_late_payment(&self) -> Option<DateTime<Utc>> {
        self.moods().late.keys().next().map(|(arrives_at, _)| *arrives_at)
    }

    fn records(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Vec<Payment> {
        self.payments(customer, since)
    }

    // Its schedule says when it is calm.
    fn calm_down(&self) {}
}

/// The gateway as one process reaches it.
struct GatewayOf {
    gateway: Arc<MoodyGateway>,
    turns: Arc<Turns>,
}

#[async_trait]
impl PaymentGateway for GatewayOf {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.gateway.sandbox.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        let answer = self.gateway.charge(request, self.turns.actor());
        let key = &request.idempotency_key;
        self.gateway.schedule.note(&format!("{} charge {key} {} {answer:?}", self.turns.actor(), request.due_on));
        answer
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let is_busy = self.gateway.moods().busy_until.is_some_and(|until| self.gateway.clock.now() < until);
        if is_busy {
            return Err(GatewayError::Throttled { retry_after: Some(Duration::ZERO) });
        }
        let payments = self.gateway.payments(customer, since);
        self.gateway.oracle().known(self.gateway.clock.now(), &payments);
        self.gateway.schedule.note(&format!("{} payments of {customer} {payments:?}", self.turns.actor()));
        Ok(payments)
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.gateway.sandbox.payment(id).await
    }
}

impl fmt::Debug for GatewayOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GatewayOf")
    }
}
