//! Stripe as a play meets it: the shipped adapter over the unkind stand-in, request by request.
//!
//! The oracle is told what stands in the books of the stand-in after each request. It never sees a response.

mod events;
mod records;
mod requests;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment};
use chrono::{DateTime, Utc};
use clock::{Clock, SimulatedClock};
use emulator::{Config, InProcess, Injector, StripeServer};
use gateways::{ChargeAnswer, ChargeRequest, GatewayError, PaymentGateway, SigningSecrets, Stripe};
use inbound::StripeEvents;
use store::Table;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::oracle::Oracle;
use crate::played_gateway::{Event, PlayedGateway};
use crate::schedule::{GIVEN_UP_AT, SLOWEST_REQUEST, Schedule, Turns};
use events::Events;
use records::Entry;
use requests::{Requests, SENDER, Sender};

/// The secret with which events are signed.
const SECRET: &str = "whsec_0123456789abcdef";

/// Stripe of one play.
pub struct StripeGateway {
    adapter: Arc<Stripe>,
    secrets: SigningSecrets,
    books: Arc<Books>,
    schedule: Schedule,
    /// The adapter sets timers. This runtime takes them and is never driven, so that none of them ends anything: in a play only
    /// the simulated clock does.
    runtime: Runtime,
}

/// The books of the stand-in, and what the oracle knows of them.
pub struct Books {
    server: Arc<StripeServer>,
    clock: Arc<SimulatedClock>,
    oracle: Arc<Mutex<Oracle>>,
    /// As the oracle knows them, in the order of the books.
    known: Mutex<Vec<Entry>>,
    events: Events,
}

impl StripeGateway {
    /// Stripe on `clock`. Of a thousand requests so many go wrong, as the seed decides.
    ///
    /// # Panics
    /// If the machine has no timers at all.
    pub fn new(
        clock: Arc<SimulatedClock>,
        schedule: Schedule,
        oracle: Arc<Mutex<Oracle>>,
        (seed, per_thousand): (u64, u32),
    ) -> Self {
        let secrets = SigningSecrets::parse(SECRET).expect("a secret");
        let server = StripeServer::new(clock.clone());
        server.be_unkind(seed, per_thousand);
        let in_process = InProcess(server.clone());
        let books = Arc::new(Books { server, clock, oracle, known: Mutex::default(), events: Events::new(seed) });
        let requests = Requests { in_process, books: books.clone(), schedule: schedule.clone() };
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let adapter = Arc::new(InProcess::adapter(Arc::new(requests)));
        Self { adapter, secrets, books, schedule, runtime }
    }

    /// What receives Stripe's events about `table` in a process on `clock`.
    pub fn receiver(&self, table: Table, config: &Config, clock: Arc<dyn Clock>) -> StripeEvents {
        StripeEvents::new(table, self.adapter.clone(), self.secrets.clone(), config.of_webhooks(), clock)
    }

    /// Sends `event` to `receiver`, which belongs to the process of `turns` and `injector`.
    pub async fn send(&self, event: &Event, receiver: &StripeEvents, turns: Arc<Turns>, injector: Arc<Injector>) {
        let body = self.books.server.event(&event.id, "payment_intent.succeeded", &event.payment);
        let signature = self.secrets.sign(body.as_bytes(), self.books.clock.now());
        let sender = Sender { turns, injector };
        let taken = self.carried_out(&sender, &event.id, receiver.take(&signature, body.as_bytes())).await;
        if taken.is_ok() {
            self.books.events.received(event);
        }
    }

    /// Carries out `call` of the process of `sender`.
    async fn carried_out<T: fmt::Debug>(&self, sender: &Sender, name: &str, call: impl Future<Output = T> + Send) -> T {
        let runtime = self.runtime.handle().clone();
        let result = SENDER.scope(sender.clone(), Entered { runtime, future: Box::pin(call) }).await;
        self.schedule.note(&format!("{} {name} {result:?}", sender.turns.actor()));
        result
    }
}

impl fmt::Debug for StripeGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StripeGateway")
    }
}

impl Books {
    fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlayedGateway for StripeGateway {
    fn for_process(self: Arc<Self>, turns: Arc<Turns>, injector: Arc<Injector>) -> Arc<dyn PaymentGateway> {
        Arc::new(OfProcess { gateway: self, sender: Sender { turns, injector } })
    }

    fn make_late_payments(&self) {
        if self.next_late_payment().is_some_and(|at| at <= self.books.clock.now()) {
            self.books.show_repairs();
        }
    }

    fn next_late_payment(&self) -> Option<DateTime<Utc>> {
        self.books.server.next_repair()
    }

    fn records(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Vec<Payment> {
        self.books.show_repairs();
        self.books.payments(customer, since)
    }

    fn next_event(&self) -> Option<DateTime<Utc>> {
        self.books.events.next()
    }

    fn events(&self) -> Vec<Event> {
        self.books.events.send(self.books.clock.now())
    }

    fn calm_down(&self) {
        self.books.server.be_unkind(0, 0);
    }
}

/// Stripe as one process reaches it.
#[derive(Debug)]
struct OfProcess {
    gateway: Arc<StripeGateway>,
    sender: Sender,
}

impl OfProcess {
    /// Carries out `call` of this process.
    async fn carried_out<T: fmt::Debug>(&self, name: &str, call: impl Future<Output = T> + Send) -> T {
        self.gateway.carried_out(&self.sender, name, call).await
    }
}

#[async_trait]
impl PaymentGateway for OfProcess {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.carried_out("account", self.gateway.adapter.account()).await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        let now = self.gateway.books.clock.now();
        self.gateway.books.oracle().asked(now, request);
        let charge = GIVEN_UP_AT.scope(now + SLOWEST_REQUEST, self.gateway.adapter.charge(request));
        self.carried_out(&request.idempotency_key, charge).await
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        self.carried_out(customer.as_str(), self.gateway.adapter.payments_of(customer, since)).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.carried_out(id.as_str(), PaymentGateway::payment(self.gateway.adapter.as_ref(), id)).await
    }
}

/// A future that is polled in the context of a runtime.
struct Entered<'a, T> {
    runtime: Handle,
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
}

impl<T> Future for Entered<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        let _entered = this.runtime.enter();
        this.future.as_mut().poll(context)
    }
}
