//! An API to ask, on a clock that is set.

use std::sync::Arc;

use api::Api;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use axum::{Extension, Router};
use billing::Subscription;
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock, SimulatedClock};
use delivery::Reach;
use emulator::{Deployment, Limits, STRIPE_KEY, StripeServer, Wire, serve};
use gateways::{PaymentGateway, Processor, Sandbox, Stripe};
use payments::ChargeDue;
use rest::Caller;
use serde_json::Value;
use store::Table;
use sweep::{BatchRequest, Sweep};
use testkit::{InMemory, Letterbox, UnreadQueue, config, sample};
use tower::ServiceExt;
use ulid::Ulid;

/// An API on 5 March 2026, with the account `acme` and its Gold plan on the tenth.
pub struct World {
    router: Router,
    pub clock: Arc<SimulatedClock>,
    pub table: Table,
    pub sandbox: Arc<Sandbox>,
    payments: Sweep<ChargeDue>,
    pub gold: Subscription,
}

pub struct Answered {
    pub status: u16,
    headers: HeaderMap,
    pub text: String,
}

impl Answered {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Status, kind of problem, field, and detail.
    pub fn problem(&self) -> String {
        let json = self.json();
        let text = |name: &str| json[name].as_str().unwrap_or("-").replace("urn:dueday:problem:", "");
        format!("{} {} {}: {}", self.status, text("type"), text("field"), text("detail"))
    }
}

impl World {
    pub async fn new() -> Self {
        Self::over(Wire::default()).await
    }

    /// A world whose billing time zone is `zone`.
    pub async fn in_zone(zone: &str) -> Self {
        Self::set_up(Wire::default(), &[("DUEDAY_SHARDS", "1"), ("DUEDAY_TIME_ZONE", zone)]).await
    }

    /// A world whose API reaches the table over `wire`.
    pub async fn over(wire: Wire) -> Self {
        Self::set_up(wire, &[("DUEDAY_SHARDS", "1")]).await
    }

    /// A world that charges by a stand-in for Stripe.
    pub async fn over_stripe() -> (Self, Arc<StripeServer>) {
        let system = Self::system(&[("DUEDAY_SHARDS", "1")]).await;
        let server = StripeServer::new(system.clock.clone());
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(listener, server.clone().router(), Limits::default()));
        let stripe = Arc::new(Stripe::new(STRIPE_KEY, &url, std::time::Duration::from_secs(5)));
        (Self::on(system, Wire::default(), stripe).await, server)
    }

    async fn set_up(wire: Wire, settings: &[(&str, &str)]) -> Self {
        let system = Self::system(settings).await;
        system.sandbox.served_at("http://127.0.0.1:7879");
        let sandbox = system.sandbox.clone();
        Self::on(system, wire, sandbox).await
    }

    async fn system(settings: &[(&str, &str)]) -> InMemory {
        let clock = SimulatedClock::new(at("2026-03-05T12:00:00Z"), 0);
        let config = config(settings).unwrap();
        InMemory::new(config, clock, Arc::new(Letterbox::default())).await.unwrap()
    }

    /// The world of `system`, which charges by `gateway`; its API reaches the table over `wire`.
    async fn on<G: Processor + 'static>(system: InMemory, wire: Wire, gateway: Arc<G>) -> Self {
        let Deployment { table, config, .. } = &system.deployment;
        table.put_account(&sample::account()).await.unwrap();
        let gold = sample::subscription(10, at("2026-03-01T00:00:00Z").date_naive());
        table.create_subscription(&gold, None).await.unwrap();
        let wired = system.over(Arc::new(wire)).table;
        let api = Api::new(wired, config.of_api(), system.clock.clone()).await.unwrap();
        let api = api.with_gateway(gateway.clone(), &system.deployment.config.charging);
        let router = api.with_deliveries(Arc::new(UnreadQueue), Reach::Public).router();
        let gateway: Arc<dyn PaymentGateway> = gateway;
        let charging = Deployment { gateway, ..system.deployment.clone() };
        let payments = charging.payments().await.unwrap();
        let (clock, sandbox) = (system.clock.clone(), system.sandbox.clone());
        Self { router, clock, table: table.clone(), sandbox, payments, gold }
    }

    /// The same world, served beside its description.
    pub async fn with_docs(self) -> Self {
        let config = config(&[("DUEDAY_SHARDS", "1")]).unwrap();
        let api = Api::new(self.table.clone(), config.of_api(), self.clock.clone()).await.unwrap();
        Self { router: api.with_docs().router(), ..self }
    }

    /// The same world, whose API reads `clock`.
    pub async fn read_by(self, clock: Arc<dyn Clock>) -> Self {
        let config = config(&[("DUEDAY_SHARDS", "1")]).unwrap();
        let api = Api::new(self.table.clone(), config.of_api(), clock).await.unwrap();
        Self { router: api.with_gateway(self.sandbox.clone(), &config.charging).router(), ..self }
    }

    pub async fn send(&self, caller: &Caller, request: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        self.sent(Some(caller), request, headers, body).await
    }

    /// The request of nobody in particular.
    pub async fn anonymous(&self, request: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        self.sent(None, request, headers, body).await
    }

    async fn sent(&self, caller: Option<&Caller>, request: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let (method, path) = request.split_once(' ').unwrap();
        let path = path.replace("{gold}", &format!("/accounts/acme/subscriptions/{}", self.gold.id));
        let mut request = Request::builder().method(method).uri(path);
        if method != "GET" && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let router = match caller {
            Some(caller) => self.router.clone().layer(Extension(caller.clone())),
            None => self.router.clone(),
        };
        let response = router.oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), 1_000_000).await.unwrap();
        Answered { status, headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    /// The operator's request.
    pub async fn ask(&self, request: &str, body: &str) -> Answered {
        self.ask_with(request, &[], body).await
    }

    /// The operator's request, with headers.
    pub async fn ask_with(&self, request: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        self.send(&Caller::Operator, request, headers, body).await
    }

    pub async fn keyed(&self, request: &str, key: &str, body: &str) -> Answered {
        self.send(&Caller::Operator, request, &[("idempotency-key", key)], body).await
    }

    pub async fn stored(&self) -> Subscription {
        self.table.get_subscription(&self.gold.account, self.gold.id).await.unwrap().unwrap()
    }

    pub async fn charge(&self, morning: &str) {
        self.clock.set(at(morning));
        let request = BatchRequest::on(at(morning).date_naive());
        self.payments.run(&request, at(morning) + TimeDelta::hours(1)).await.unwrap();
    }
}

/// A clock that goes on by a second each time that it is read.
#[derive(Debug)]
pub struct TickingClock(pub SimulatedClock);

impl Clock for TickingClock {
    fn now(&self) -> DateTime<Utc> {
        let now = self.0.now();
        self.0.set(now + TimeDelta::seconds(1));
        now
    }

    fn ulid(&self) -> Ulid {
        self.0.ulid()
    }

    fn secret(&self) -> [u8; 32] {
        self.0.secret()
    }
}

pub fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

pub fn acme() -> Caller {
    Caller::Account(sample::account().id)
}

pub const NEW: &str = r#"{"sku":"silver","product_name":"Silver plan","payment_day":10,"amount":599,"currency":"EUR",
    "payment_method":{"customer":"cus_1","payment_method":"pm_card_visa"},"first_payment_date":"2026-03-10"}"#;
