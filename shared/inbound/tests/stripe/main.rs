//! Tests of events from Stripe, which a strict stand-in sends: in any order, repeatedly, late, and before it responds
//! to our own request.

mod disputes;
mod disputes_by_seed;
mod findings;
mod mail_feedback;
mod payments;
mod reversals;
mod webhook_route;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use billing::{Attempt, PaymentMethod, Receipt, Subscription, SubscriptionChanges, SubscriptionStatus};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use deployment::{Deployment, InMemoryDeployment};
use emulator::{
    EngineConnection, ExternalCall, Fault, FaultInjector, STRIPE_KEY, ServerLimits, StripeFault, StripeServer,
    serve_http,
};
use gateway_objects::{DisputeRecorder, PaymentMethodSetups, RefundRequester};
use gateways::{InboundWebhookError, SigningSecrets, Stripe};
use inbound::{InboundError, InboundOutcome, StripeEventHandler, stripe_webhook_routes};
use store::{OutcomeCounts as _, Paging, Table};
use sweep::BatchRequest;
use testkit::{
    FAULTS_AT_EACH_CALL, RecordedMails, create_replaced_secret, fault_at_call, read_test_config, sample_account,
    sample_action, sample_subscription,
};
use tower::ServiceExt as _;
use ulid::Ulid;

/// The signing secret of the inbound webhook.
const SECRET: &str = "whsec_0123456789abcdef";

/// Parses the time `text`, such as `2026-03-10T06:00:00Z`.
fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The environment of the tests: a table with one subscription, a stand-in for Stripe, and the handler of Stripe's
/// events.
struct World {
    system: InMemoryDeployment,
    server: Arc<StripeServer>,
    stripe: Arc<Stripe>,
    events: Arc<StripeEventHandler>,
    gold: Subscription,
}

impl World {
    /// Creates a world with one subscription (the Gold plan), which is paid with `card`, on its due date.
    async fn new(card: &str) -> Self {
        Self::with_settings(card, &[]).await
    }

    /// Creates a world like [`World::new`], with additional environment variables.
    async fn with_settings(card: &str, settings: &[(&'static str, &str)]) -> Self {
        let settings: Vec<_> = [("DUEDAY_SHARDS", "1")].into_iter().chain(settings.iter().copied()).collect();
        let config = read_test_config(&settings).unwrap();
        let clock = SimulatedClock::new(at("2026-03-10T06:00:00Z"), 1);
        let system = InMemoryDeployment::new(config, clock, Arc::new(RecordedMails::default())).await.unwrap();
        let mut gold = sample_subscription(10, "2026-03-01".parse().unwrap());
        gold.payment_method.payment_method = card.parse().unwrap();
        let table = &system.deployment.table;
        table.put_account(&sample_account()).await.unwrap();
        table.create_subscription(&gold, None).await.unwrap();
        let server = StripeServer::new(system.clock.clone());
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve_http(listener, server.clone().router(), ServerLimits::default()));
        let stripe = Arc::new(Stripe::new(STRIPE_KEY, &url, Duration::from_secs(5)));
        let events = Arc::new(Self::event_handler(&system, table.clone(), &stripe));
        Self { system, server, stripe, events, gold }
    }

    /// Creates a handler of Stripe's events about the payments in `table`.
    fn event_handler(system: &InMemoryDeployment, table: Table, stripe: &Arc<Stripe>) -> StripeEventHandler {
        let secrets = SigningSecrets::parse(SECRET).unwrap();
        StripeEventHandler::new(table, stripe.clone(), secrets, system.clock.clone())
    }

    /// Returns the payments table.
    fn table(&self) -> &Table {
        &self.system.deployment.table
    }

    /// Runs the payment batch at the time `when`. Returns the number of rows for each outcome. Leaves out outcomes with
    /// the number 0.
    async fn run_payments(&self, when: &str) -> Vec<(&'static str, u64)> {
        self.system.clock.set(at(when));
        let deployment = Deployment { gateway: self.stripe.clone(), ..self.system.deployment.clone() };
        let payments = deployment.payment_batch().await.unwrap();
        let request = BatchRequest::for_date(when[..10].parse().unwrap());
        let report = payments.run(&request, at(when) + TimeDelta::hours(1)).await.unwrap();
        report.counts.counts_by_name().into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// Signs `event` and handles it like an inbound webhook.
    async fn send_event(&self, event: &str) -> Result<InboundOutcome, InboundError> {
        let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), self.system.clock.now());
        self.events.handle(&header, event.as_bytes()).await
    }

    /// Handles `event` like [`World::send_event`], with `fault` at the call to the table with the number `at`. Returns the
    /// number of calls.
    async fn send_event_with_fault(&self, event: &str, at: u64, fault: Fault) -> u64 {
        let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), self.system.clock.now());
        let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(at, fault))));
        let connection = EngineConnection::with_injector(injector.clone()).without_retries();
        let deployment = self.system.with_connection(Arc::new(connection));
        let events = World::event_handler(&self.system, deployment.table, &self.stripe);
        let _ = injector.run(events.handle(&header, event.as_bytes())).await;
        injector.call_count()
    }

    /// Returns the subscription as it is stored now.
    async fn stored_subscription(&self) -> Subscription {
        self.table().get_subscription(&self.gold.account, self.gold.id).await.unwrap().unwrap()
    }

    /// Returns the stored receipts of the account, the newest due date first.
    async fn receipts(&self) -> Vec<Receipt> {
        let now = self.system.clock.now();
        self.table().get_receipts_by_account(&self.gold.account, &Paging::all(), now).await.unwrap().items
    }

    /// Changes the payment method of the subscription.
    async fn change_card(&self, card: &str) {
        let (lead, today) = (self.system.deployment.table.policy().lead, self.system.clock.now().date_naive());
        let method = PaymentMethod {
            payment_method: card.parse().unwrap(),
            ..self.stored_subscription().await.payment_method.clone()
        };
        let changes = SubscriptionChanges { payment_method: Some(method), ..SubscriptionChanges::default() };
        let changed = self.stored_subscription().await.apply_changes(&changes, lead, today).unwrap();
        self.table().update_subscription(&self.stored_subscription().await, &changed).await.unwrap();
    }

    /// Sends `event` to a handler. At the request to the table with the number `call`, sets the clock to `later`. Returns
    /// whether the handler made this request.
    async fn send_event_and_pass_time(&self, event: &str, call: u64, later: &'static str) -> bool {
        let clock = self.system.clock.clone();
        let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), clock.now());
        let pass_time = move |made: &ExternalCall<'_>| {
            if made.number == call {
                clock.set(at(later));
            }
            None
        };
        let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(pass_time)));
        let connection = EngineConnection::with_injector(injector.clone());
        let table = self.system.with_connection(Arc::new(connection)).table;
        let events = Self::event_handler(&self.system, table, &self.stripe);
        injector.run(events.handle(&header, event.as_bytes())).await.unwrap().unwrap();
        injector.call_count() >= call
    }

    /// Creates the service that stores disputes.
    fn disputes(&self) -> DisputeRecorder {
        DisputeRecorder::new(self.table().clone(), self.system.clock.clone())
    }

    /// Returns each waived period with its reason.
    async fn waived_periods(&self) -> Vec<String> {
        let now = self.system.clock.now();
        let kept = self.table().get_payment_records(&self.gold.account, self.gold.id, now).await.unwrap();
        kept.waived.iter().map(|waived| format!("{} {}", waived.due_on, waived.reason)).collect()
    }

    /// Creates the service that makes refunds.
    fn refunds(&self) -> RefundRequester {
        RefundRequester::new(self.table().clone(), self.stripe.clone(), self.system.clock.clone())
    }
}
