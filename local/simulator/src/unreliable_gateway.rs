//! The sandbox gateway with the faults of real gateways:
//! - After status 500, requests with the same idempotency key get status 500 again, for up to 26 hours.
//! - A request gets status 409 or 429.
//! - The gateway accepts a request up to three minutes after the client's time-out.
//! - A response states a wrong amount.
//! - A payment is declined first, and later turns out to be paid.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Money, Payment, PaymentStatus};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use deployment::FaultyService;
use emulator::FaultInjector;
use gateways::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sandbox::Sandbox;

use crate::calendar::month_of;
use crate::oracle::Oracle;
use crate::schedule::{CallSchedule, ProcessSchedule};
use crate::simulated_gateway::SimulatedGateway;

/// The maximum delay after which the gateway accepts a request that timed out.
const MAX_DELAY_SECONDS: i64 = 180;

/// The unreliable gateway, shared by all processes.
pub struct UnreliableGateway {
    sandbox: Arc<Sandbox>,
    clock: Arc<SimulatedClock>,
    schedule: CallSchedule,
    oracle: Arc<Mutex<Oracle>>,
    faults: Mutex<GatewayFaultState>,
}

/// The random faults of the gateway, and the state that past faults have caused.
struct GatewayFaultState {
    rng: ChaCha8Rng,
    /// The average number of charge requests, of a thousand, that have a fault.
    faults_per_thousand: u32,
    /// The idempotency keys whose requests get a response with status 500, each with the instant at which these
    /// responses end.
    failed_keys: HashMap<String, DateTime<Utc>>,
    /// The instant until which every request gets status 429; `None` before the first response with status 429.
    rate_limited_until: Option<DateTime<Utc>>,
    /// Requests that timed out for the client, by the instant at which the gateway will accept them and by their
    /// number.
    late: BTreeMap<(DateTime<Utc>, u64), ChargeRequest>,
    /// The number of requests that have timed out so far.
    late_count: u64,
    /// The ids of the payments that were declined first and turned out to be paid.
    paid_after_all: HashSet<GatewayToken>,
}

/// The gateway's behaviour for one charge request.
enum ChargeBehaviour {
    Normal,
    RateLimited,
    /// The request makes no payment and gets no usable response. The value is the reason.
    Unknown(&'static str),
    /// The request times out, and the gateway accepts it later.
    TimedOut,
    /// The connection fails, and the gateway reports an earlier declined payment of the month as succeeded from now on.
    EarlierDeclinePaid,
    /// The charge succeeds, and the response states a wrong amount.
    WrongAmount,
}

impl UnreliableGateway {
    pub fn new(
        sandbox: Arc<Sandbox>,
        clock: Arc<SimulatedClock>,
        schedule: CallSchedule,
        oracle: Arc<Mutex<Oracle>>,
        seed: u64,
        faults_per_thousand: u32,
    ) -> Self {
        let faults = GatewayFaultState {
            rng: ChaCha8Rng::seed_from_u64(seed),
            faults_per_thousand,
            failed_keys: HashMap::new(),
            rate_limited_until: None,
            late: BTreeMap::new(),
            late_count: 0,
            paid_after_all: HashSet::new(),
        };
        Self { sandbox, clock, schedule, oracle, faults: Mutex::new(faults) }
    }

    fn faults(&self) -> MutexGuard<'_, GatewayFaultState> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts the timed-out requests that arrive by now.
    fn accept_late_requests(&self) {
        let now = self.clock.now();
        loop {
            let arrived = {
                let mut faults = self.faults();
                let first = faults.late.first_entry().filter(|first| first.key().0 <= now);
                first.map(|first| first.remove())
            };
            let Some(request) = arrived else { return };
            self.schedule.add_to_trace(&format!("late {}", request.idempotency_key));
            self.accept_charge(&request, 0);
        }
    }

    /// Passes the charge request of `actor` to the sandbox, and reports the resulting payment or rejection to the
    /// oracle.
    fn accept_charge(&self, request: &ChargeRequest, actor: u64) -> ChargeResponse {
        let now = self.clock.now();
        let response = self.sandbox.charge_at(request, now);
        let response = response.unwrap_or_else(|error| ChargeResponse::Unknown { reason: error.to_string() });
        let mut payment = self.payments(&request.payment_method.customer, now).into_iter();
        let payment = payment
            .rfind(|payment| payment.subscription == request.subscription && payment.attempt_no == request.attempt_no);
        if matches!(response, ChargeResponse::Rejected { .. } | ChargeResponse::KeyReused) {
            self.oracle().record_charge_rejection(request);
        }
        if let Some(payment) = payment {
            self.oracle().record_payment(actor, now, &payment, request.payment_method.payment_method.as_str());
        }
        response
    }

    /// Returns all payments of `customer` that were created at `since` or later, with their current status.
    fn payments(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Vec<Payment> {
        let payments = self.sandbox.payments_at(customer, since, self.clock.now()).unwrap_or_default();
        let faults = self.faults();
        let with_current_status = |payment: Payment| match faults.paid_after_all.contains(&payment.id) {
            true => Payment { status: PaymentStatus::Succeeded, ..payment },
            false => payment,
        };
        payments.into_iter().map(with_current_status).collect()
    }

    /// Returns the last declined payment of the month that `request` charges, if there is one.
    fn last_declined_payment(&self, request: &ChargeRequest) -> Option<Payment> {
        let is_of_month = |payment: &Payment| {
            payment.subscription == request.subscription
                && month_of(payment.due_on) == month_of(request.due_on)
                && payment.attempt_no < request.attempt_no
                && matches!(payment.status, PaymentStatus::Declined(_))
        };
        self.payments(&request.payment_method.customer, DateTime::UNIX_EPOCH).into_iter().rfind(is_of_month)
    }

    /// Chooses the gateway's behaviour for `request` at random.
    fn next_behaviour(&self, request: &ChargeRequest) -> ChargeBehaviour {
        let now = self.clock.now();
        let mut faults = self.faults();
        if faults.rate_limited_until.is_some_and(|until| now < until) {
            return ChargeBehaviour::RateLimited;
        }
        if faults.failed_keys.get(&request.idempotency_key).is_some_and(|until| now < *until) {
            return ChargeBehaviour::Unknown("500");
        }
        let faults_per_thousand = faults.faults_per_thousand;
        if self.schedule.is_fault_free() || !faults.rng.random_ratio(faults_per_thousand, 1_000) {
            return ChargeBehaviour::Normal;
        }
        match faults.rng.random_range(0..12) {
            0..2 => {
                let until = now + TimeDelta::minutes(faults.rng.random_range(1..=60 * 26));
                faults.failed_keys.insert(request.idempotency_key.clone(), until);
                ChargeBehaviour::Unknown("500")
            }
            2 => ChargeBehaviour::Unknown("409"),
            3 => {
                faults.rate_limited_until = Some(now + TimeDelta::minutes(faults.rng.random_range(1..=20)));
                ChargeBehaviour::RateLimited
            }
            4..7 => ChargeBehaviour::TimedOut,
            7..10 => ChargeBehaviour::EarlierDeclinePaid,
            _ => ChargeBehaviour::WrongAmount,
        }
    }

    /// Responds to the charge request of `actor`, with or without a fault.
    fn charge(&self, request: &ChargeRequest, actor: u64) -> ChargeResponse {
        self.oracle().record_charge_request(self.clock.now(), request);
        let unknown = |reason: &str| ChargeResponse::Unknown { reason: reason.to_owned() };
        match self.next_behaviour(request) {
            ChargeBehaviour::Normal => self.accept_charge(request, actor),
            ChargeBehaviour::RateLimited => ChargeResponse::Throttled { retry_after: Some(Duration::ZERO) },
            ChargeBehaviour::Unknown(reason) => unknown(reason),
            ChargeBehaviour::TimedOut => {
                let mut faults = self.faults();
                let arrives_at = self.clock.now() + TimeDelta::seconds(faults.rng.random_range(30..=MAX_DELAY_SECONDS));
                faults.late_count += 1;
                let number = faults.late_count;
                faults.late.insert((arrives_at, number), request.clone());
                unknown("timed out")
            }
            ChargeBehaviour::EarlierDeclinePaid => {
                if let Some(payment) = self.last_declined_payment(request) {
                    self.faults().paid_after_all.insert(payment.id.clone());
                    let paid = Payment { status: PaymentStatus::Succeeded, ..payment };
                    self.oracle().record_payment_statuses(self.clock.now(), &[paid]);
                }
                unknown("connection reset")
            }
            ChargeBehaviour::WrongAmount => match self.accept_charge(request, actor) {
                ChargeResponse::Succeeded(payment) => ChargeResponse::Succeeded(with_wrong_amount(payment)),
                response => response,
            },
        }
    }
}

/// Returns `payment` with an amount that differs from the charged amount.
fn with_wrong_amount(payment: Payment) -> Payment {
    let amount = Money::new(payment.amount.minor() + 100, payment.amount.currency());
    Payment { amount, ..payment }
}

impl fmt::Debug for UnreliableGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnreliableGateway")
    }
}

impl SimulatedGateway for UnreliableGateway {
    fn gateway_of_process(
        self: Arc<Self>,
        process_schedule: Arc<ProcessSchedule>,
        injector: Arc<FaultInjector>,
    ) -> Arc<dyn PaymentGateway> {
        Arc::new(FaultyService::new(Arc::new(ProcessGateway { gateway: self, process_schedule }), injector))
    }

    fn make_late_payments(&self) {
        self.accept_late_requests();
    }

    fn next_late_payment_time(&self) -> Option<DateTime<Utc>> {
        self.faults().late.keys().next().map(|(arrives_at, _)| *arrives_at)
    }

    fn payments_for_operator(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Vec<Payment> {
        self.payments(customer, since)
    }

    // Nothing to do: this gateway asks the schedule whether faults are allowed, and begins no fault after the schedule
    // has stopped all faults.
    fn stop_faults(&self) {}
}

/// The connection of one process to the unreliable gateway.
struct ProcessGateway {
    gateway: Arc<UnreliableGateway>,
    process_schedule: Arc<ProcessSchedule>,
}

#[async_trait]
impl PaymentGateway for ProcessGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.gateway.sandbox.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        let response = self.gateway.charge(request, self.process_schedule.calling_actor());
        let key = &request.idempotency_key;
        self.gateway.schedule.add_to_trace(&format!(
            "{} charge {key} {} {response:?}",
            self.process_schedule.calling_actor(),
            request.due_on
        ));
        response
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        let is_rate_limited =
            self.gateway.faults().rate_limited_until.is_some_and(|until| self.gateway.clock.now() < until);
        if is_rate_limited {
            return Err(GatewayError::Throttled { retry_after: Some(Duration::ZERO) });
        }
        let payments = self.gateway.payments(customer, since);
        self.gateway.oracle().record_payment_statuses(self.gateway.clock.now(), &payments);
        self.gateway
            .schedule
            .add_to_trace(&format!("{} payments of {customer} {payments:?}", self.process_schedule.calling_actor()));
        Ok(payments)
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.gateway.sandbox.payment(id).await
    }
}

impl fmt::Debug for ProcessGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessGateway")
    }
}
