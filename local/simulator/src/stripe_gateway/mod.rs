//! Stripe in a simulation with faults. The production adapter sends its requests to the stand-in for Stripe (a server
//! that imitates Stripe), which lets random requests fail. Each HTTP request waits for its turn in the schedule.
//!
//! After each request, the oracle reads the new state of the stand-in's payments. The oracle never reads a response of
//! the stand-in.

mod events;
mod records;
mod transport;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use billing::{AmountRules, GatewayAccount, GatewayToken, Payment};
use chrono::{DateTime, Utc};
use clock::{Clock, SimulatedClock};
use emulator::{FaultInjector, InProcessTransport, StripeServer};
use gateways::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway, SigningSecrets, Stripe};
use inbound::StripeEventHandler;
use store::Table;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::oracle::Oracle;
use crate::schedule::{CHARGE_DEADLINE, CallSchedule, ProcessSchedule, SLOWEST_REQUEST};
use crate::simulated_gateway::{GatewayEvent, SimulatedGateway};
use events::EventQueue;
use records::IntentStatus;
use transport::{CALLING_PROCESS, CallingProcess, ProcessTransport};

/// The webhook signing secret that signs the events of the stand-in for Stripe.
const SIGNING_SECRET: &str = "whsec_0123456789abcdef";

/// The Stripe of one simulation: the production adapter, connected to the stand-in for Stripe.
pub struct StripeGateway {
    adapter: Arc<Stripe>,
    secrets: SigningSecrets,
    observed: Arc<ObservedStripeServer>,
    schedule: CallSchedule,
    /// The adapter sets timers on this runtime. Nothing drives the runtime, so no timer ever fires: in a simulation
    /// only the simulated clock ends a request.
    runtime: Runtime,
}

/// The stand-in for Stripe, whose payments are reported to the oracle.
pub struct ObservedStripeServer {
    server: Arc<StripeServer>,
    clock: Arc<SimulatedClock>,
    oracle: Arc<Mutex<Oracle>>,
    /// For each PaymentIntent, the status that was last reported to the oracle, in the order in which the intents were
    /// created.
    reported_statuses: Mutex<Vec<IntentStatus>>,
    events: EventQueue,
}

impl StripeGateway {
    /// Creates the Stripe gateway of a simulation with this clock. On average, `faults_per_thousand` of 1,000
    /// requests fail; `seed` decides which requests.
    ///
    /// # Panics
    /// If the runtime for the timers cannot be created.
    pub fn new(
        clock: Arc<SimulatedClock>,
        schedule: CallSchedule,
        oracle: Arc<Mutex<Oracle>>,
        seed: u64,
        faults_per_thousand: u32,
    ) -> Self {
        let secrets = SigningSecrets::parse(SIGNING_SECRET).expect("a secret");
        let server = StripeServer::new(clock.clone());
        server.set_random_faults(seed, faults_per_thousand);
        let in_process = InProcessTransport(server.clone());
        let observed = Arc::new(ObservedStripeServer {
            server,
            clock,
            oracle,
            reported_statuses: Mutex::default(),
            events: EventQueue::new(seed),
        });
        let transport = ProcessTransport { in_process, observed: observed.clone(), schedule: schedule.clone() };
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let adapter = Arc::new(InProcessTransport::stripe_adapter(Arc::new(transport)));
        Self { adapter, secrets, observed, schedule, runtime }
    }

    /// Returns the stand-in for Stripe.
    pub fn server(&self) -> Arc<StripeServer> {
        self.observed.server.clone()
    }

    /// Creates the webhook receiver of a process. The receiver verifies Stripe's events and writes their effects to
    /// `table`. `clock` is the clock of the process.
    pub fn event_handler(&self, table: Table, clock: Arc<dyn Clock>) -> StripeEventHandler {
        StripeEventHandler::new(table, self.adapter.clone(), self.secrets.clone(), clock)
    }

    /// Sends `event` to `receiver`, which belongs to the process of `process_schedule` and `injector`.
    pub async fn send_event(
        &self,
        event: &GatewayEvent,
        receiver: &StripeEventHandler,
        process_schedule: Arc<ProcessSchedule>,
        injector: Arc<FaultInjector>,
    ) {
        let body = self.observed.server.event_body(&event.id, "payment_intent.succeeded", &event.payment);
        let signature = self.secrets.sign(body.as_bytes(), self.observed.clock.now());
        let caller = CallingProcess { process_schedule, injector };
        let handled = self.execute_call(&caller, &event.id, receiver.handle(&signature, body.as_bytes())).await;
        if handled.is_ok() {
            self.observed.events.remove_received(event);
        }
    }

    /// Executes `call` for the process `caller`, and adds `name` and the result to the trace of the simulation.
    async fn execute_call<T: fmt::Debug>(
        &self,
        caller: &CallingProcess,
        name: &str,
        call: impl Future<Output = T> + Send,
    ) -> T {
        let runtime = self.runtime.handle().clone();
        let result = CALLING_PROCESS.scope(caller.clone(), FutureInRuntime { runtime, future: Box::pin(call) }).await;
        self.schedule.add_to_trace(&format!("{} {name} {result:?}", caller.process_schedule.calling_actor()));
        result
    }
}

impl fmt::Debug for StripeGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StripeGateway")
    }
}

impl ObservedStripeServer {
    fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimulatedGateway for StripeGateway {
    fn gateway_of_process(
        self: Arc<Self>,
        process_schedule: Arc<ProcessSchedule>,
        injector: Arc<FaultInjector>,
    ) -> Arc<dyn PaymentGateway> {
        Arc::new(ProcessGateway { gateway: self, caller: CallingProcess { process_schedule, injector } })
    }

    fn make_late_payments(&self) {
        if self.next_late_payment_time().is_some_and(|at| at <= self.observed.clock.now()) {
            self.observed.report_late_payments();
        }
    }

    fn next_late_payment_time(&self) -> Option<DateTime<Utc>> {
        self.observed.server.next_deferred_request()
    }

    fn payments_for_operator(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Vec<Payment> {
        self.observed.report_late_payments();
        self.observed.payments(customer, since)
    }

    fn next_event_time(&self) -> Option<DateTime<Utc>> {
        self.observed.events.next_send_at()
    }

    fn events_to_send(&self) -> Vec<GatewayEvent> {
        self.observed.events.take_due_events(self.observed.clock.now())
    }

    fn stop_faults(&self) {
        self.observed.server.set_random_faults(0, 0);
    }
}

/// The connection of one process to the Stripe of the simulation.
#[derive(Debug)]
struct ProcessGateway {
    gateway: Arc<StripeGateway>,
    caller: CallingProcess,
}

impl ProcessGateway {
    /// Executes `call` for this process.
    async fn execute_call<T: fmt::Debug>(&self, name: &str, call: impl Future<Output = T> + Send) -> T {
        self.gateway.execute_call(&self.caller, name, call).await
    }
}

#[async_trait]
impl PaymentGateway for ProcessGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.execute_call("account", self.gateway.adapter.account()).await
    }

    async fn amount_rules(&self) -> Result<AmountRules, GatewayError> {
        self.gateway.adapter.amount_rules().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        let now = self.gateway.observed.clock.now();
        self.gateway.observed.oracle().record_charge_request(now, request);
        let charge = CHARGE_DEADLINE.scope(now + SLOWEST_REQUEST, self.gateway.adapter.charge(request));
        self.execute_call(&request.idempotency_key, charge).await
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        self.execute_call(customer.as_str(), self.gateway.adapter.payments_of_customer(customer, since)).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.execute_call(id.as_str(), PaymentGateway::payment(self.gateway.adapter.as_ref(), id)).await
    }
}

/// A future that is always polled inside `runtime`, so that the future can create timers.
struct FutureInRuntime<'a, T> {
    runtime: Handle,
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
}

impl<T> Future for FutureInRuntime<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        let _entered = this.runtime.enter();
        this.future.as_mut().poll(context)
    }
}
