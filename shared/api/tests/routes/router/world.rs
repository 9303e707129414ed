//! The API under test, on a simulated clock.

use std::sync::Arc;

use api::{Api, DeployedParts};
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use axum::{Extension, Router};
use billing::Subscription;
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock, SimulatedClock};
use config::Env;
use deployment::{Deployment, DeploymentConfig, InMemoryDeployment};
use emulator::{EngineConnection, STRIPE_KEY, ServerLimits, StripeServer, serve_http};
use encryption::EncryptionKeys;
use gateways::{FullGateway, PaymentGateway, Stripe};
use outbound::EndpointUrlCheck;
use payments::PaymentBatch;
use rest::{Caller, PublicUrl, Role, TokenSubject};
use sandbox::Sandbox;
use serde_json::Value;
use store::Table;
use sweep::{BatchRequest, Sweep};
use testkit::{
    FixedResolver, RecordedMails, UnreadQueue, encryption_keys, read_test_config, sample_account, sample_subscription,
};
use tower::ServiceExt;
use ulid::Ulid;

/// The environment of the tests: the API on 5 March 2026, with the account `acme` and its subscription `gold`, which is
/// due on the tenth of each month.
pub struct World {
    router: Router,
    pub clock: Arc<SimulatedClock>,
    pub table: Table,
    pub sandbox: Arc<Sandbox>,
    payments: Sweep<PaymentBatch>,
    pub gold: Subscription,
}

/// The response of the API to a request of a test.
pub struct TestResponse {
    pub status: u16,
    headers: HeaderMap,
    pub text: String,
}

impl TestResponse {
    /// Returns the body as JSON; null if the body is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Returns the value of the header `name`; an empty text if the response does not have the header.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the status code, kind, field and detail of the problem, such as `404 not-found -: there is no such
    /// account`.
    pub fn problem(&self) -> String {
        let json = self.json();
        let text = |name: &str| json[name].as_str().unwrap_or("-").replace("urn:dueday:problem:", "");
        format!("{} {} {}: {}", self.status, text("type"), text("field"), text("detail"))
    }
}

impl World {
    /// Creates a world without faults that charges through the sandbox gateway.
    pub async fn new() -> Self {
        Self::with_connection(EngineConnection::default()).await
    }

    /// Creates a world whose billing time zone is `zone`.
    pub async fn in_zone(zone: &str) -> Self {
        Self::set_up(EngineConnection::default(), &[("DUEDAY_SHARDS", "1"), ("DUEDAY_TIME_ZONE", zone)]).await
    }

    /// Creates a world whose API is connected to the table by `connection`, which can inject faults.
    pub async fn with_connection(connection: EngineConnection) -> Self {
        Self::set_up(connection, &[("DUEDAY_SHARDS", "1")]).await
    }

    /// Creates a world that charges through a stand-in for Stripe.
    pub async fn with_stripe() -> (Self, Arc<StripeServer>) {
        let system = Self::system(&[("DUEDAY_SHARDS", "1")]).await;
        let server = StripeServer::new(system.clock.clone());
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve_http(listener, server.clone().router(), ServerLimits::default()));
        let stripe = Arc::new(Stripe::new(STRIPE_KEY, &url, std::time::Duration::from_secs(5)));
        (Self::build(system, EngineConnection::default(), stripe).await, server)
    }

    /// Creates a world with the environment variables `settings` that charges through the sandbox gateway. `connection`
    /// connects the API to the table.
    async fn set_up(connection: EngineConnection, settings: &[(&str, &str)]) -> Self {
        let system = Self::system(settings).await;
        system.sandbox.set_url("http://127.0.0.1:7879");
        let sandbox = system.sandbox.clone();
        Self::build(system, connection, sandbox).await
    }

    /// Creates a deployment in memory with the environment variables `settings`. Its clock shows noon in UTC on 5 March
    /// 2026.
    async fn system(settings: &[(&str, &str)]) -> InMemoryDeployment {
        let clock = SimulatedClock::new(at("2026-03-05T12:00:00Z"), 0);
        let config = read_test_config(settings).unwrap();
        InMemoryDeployment::new(config, clock, Arc::new(RecordedMails::default())).await.unwrap()
    }

    /// Creates a world with the table and the clock of `system`. The payments of this world are charged through
    /// `gateway`, and `connection` connects its API to the table.
    async fn build<G: FullGateway + 'static>(
        system: InMemoryDeployment,
        connection: EngineConnection,
        gateway: Arc<G>,
    ) -> Self {
        let Deployment { table, config, .. } = &system.deployment;
        table.put_account(&sample_account()).await.unwrap();
        let gold = sample_subscription(10, at("2026-03-01T00:00:00Z").date_naive());
        table.create_subscription(&gold, None).await.unwrap();
        let deployment = system.with_connection(Arc::new(connection)).table;
        let api = Api::new(deployment, &config.table, config.merchant.clone(), system.clock.clone()).await.unwrap();
        let api = api.with_gateway(gateway.clone(), &system.deployment.config.charging);
        let router = api
            .with_encryption(encryption_keys())
            .with_deliveries(Arc::new(UnreadQueue), EndpointUrlCheck::public_only_with(Arc::new(FixedResolver)))
            .router();
        let gateway: Arc<dyn PaymentGateway> = gateway;
        let charging = Deployment { gateway, ..system.deployment.clone() };
        let payments = charging.payment_batch().await.unwrap();
        let (clock, sandbox) = (system.clock.clone(), system.sandbox.clone());
        Self { router, clock, table: table.clone(), sandbox, payments, gold }
    }

    /// Creates an API of the table of this world, which uses `clock`.
    async fn create_api(&self, config: &DeploymentConfig, clock: Arc<dyn Clock>) -> Api {
        Api::new(self.table.clone(), &config.table, config.merchant.clone(), clock).await.unwrap()
    }

    /// Returns this world with an API whose route `/` links to the documentation.
    pub async fn with_docs(self) -> Self {
        let config = read_test_config(&[("DUEDAY_SHARDS", "1")]).unwrap();
        let api = self.create_api(&config, self.clock.clone()).await;
        Self { router: api.with_docs().router(), ..self }
    }

    /// Returns this world, changed so that its API charges through `gateway`.
    pub async fn with_gateway(self, gateway: Arc<dyn FullGateway>) -> Self {
        let config = read_test_config(&[("DUEDAY_SHARDS", "1")]).unwrap();
        let api = self.create_api(&config, self.clock.clone()).await;
        Self { router: api.with_gateway(gateway, &config.charging).router(), ..self }
    }

    /// Returns this world, changed so that its API has no gateway, because the API key of Stripe is missing.
    pub async fn with_stripe_without_key(self) -> Self {
        let config = read_test_config(&[("DUEDAY_SHARDS", "1")]).unwrap();
        let api = self.create_api(&config, self.clock.clone()).await;
        let env = |name: &str| (name == "DUEDAY_GATEWAY").then(|| "stripe".to_owned());
        Self { router: api.with_known_amount_rules(Env(&env)).router(), ..self }
    }

    /// Returns this world, changed so that its API belongs to a deployment with only the core.
    pub async fn with_core_only(self) -> Self {
        let config = read_test_config(&[("DUEDAY_SHARDS", "1")]).unwrap();
        let api = self.create_api(&config, self.clock.clone()).await;
        let api = api.with_gateway(self.sandbox.clone(), &config.charging).with_parts(DeployedParts::Core);
        Self { router: api.router(), ..self }
    }

    /// Returns this world, changed so that its API uses `clock`.
    pub async fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        let config = read_test_config(&[("DUEDAY_SHARDS", "1")]).unwrap();
        let api = self.create_api(&config, clock).await;
        Self { router: api.with_gateway(self.sandbox.clone(), &config.charging).router(), ..self }
    }

    /// Returns this world, changed so that its API has the encryption keys `keys`, or none.
    pub async fn with_encryption(self, keys: Option<EncryptionKeys>) -> Self {
        let config = read_test_config(&[("DUEDAY_SHARDS", "1")]).unwrap();
        let api = self.create_api(&config, self.clock.clone()).await;
        let api =
            api.with_deliveries(Arc::new(UnreadQueue), EndpointUrlCheck::public_only_with(Arc::new(FixedResolver)));
        let api = match keys {
            Some(keys) => api.with_encryption(keys),
            None => api,
        };
        Self { router: api.router(), ..self }
    }

    /// Returns a world with the same table whose requests have a token with the subject `subject`.
    pub fn with_subject(&self, subject: TokenSubject) -> WorldWithSubject<'_> {
        WorldWithSubject { world: self, subject }
    }

    /// Sends `request`, such as `GET /health`, as `caller`.
    pub async fn request_as(
        &self,
        caller: &Caller,
        request: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        self.send(Some(caller), None, request, headers, body).await
    }

    /// Sends `request` without a caller, like a request without a token.
    pub async fn request_without_token(&self, request: &str, headers: &[(&str, &str)], body: &str) -> TestResponse {
        self.send(None, None, request, headers, body).await
    }

    /// Sends `request` with the caller and the token subject that the server would have read from a token.
    async fn send(
        &self,
        caller: Option<&Caller>,
        subject: Option<&TokenSubject>,
        request: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        let (method, path) = request.split_once(' ').unwrap();
        let path = path.replace("{gold}", &format!("/accounts/acme/subscriptions/{}", self.gold.id));
        let mut request = Request::builder().method(method).uri(path);
        if method != "GET" && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let public_url = PublicUrl::parse("https://api.example.com/").unwrap();
        let router = self.router.clone().layer(Extension(public_url));
        let router = match caller {
            Some(caller) => router.layer(Extension(caller.clone())),
            None => router,
        };
        let router = match subject {
            Some(subject) => router.layer(Extension(subject.clone())),
            None => router,
        };
        let response = router.oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), 1_000_000).await.unwrap();
        TestResponse { status, headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    /// Sends `request` as the operator. `{gold}` in the path stands for the path of the subscription `gold`.
    pub async fn request(&self, request: &str, body: &str) -> TestResponse {
        self.request_with_headers(request, &[], body).await
    }

    /// Sends `request` as the operator, with `headers`.
    pub async fn request_with_headers(&self, request: &str, headers: &[(&str, &str)], body: &str) -> TestResponse {
        self.request_as(&Caller::Operator(Role::Admin), request, headers, body).await
    }

    /// Sends `request` as the operator, under the idempotency key `key`.
    pub async fn request_with_key(&self, request: &str, key: &str, body: &str) -> TestResponse {
        self.request_as(&Caller::Operator(Role::Admin), request, &[("idempotency-key", key)], body).await
    }

    /// Returns the stored subscription `gold`.
    pub async fn stored_gold(&self) -> Subscription {
        self.table.get_subscription(&self.gold.account, self.gold.id).await.unwrap().unwrap()
    }

    /// Cancels all subscriptions of the account, without entries in the action log.
    pub async fn cancel_subscriptions(&self) {
        let all = self.table.get_subscriptions_by_account(&self.gold.account, &store::Paging::all()).await.unwrap();
        for subscription in all.items {
            let now = self.clock.now();
            let cancelled = |stored: &Subscription| Ok::<_, ()>(stored.cancel(now.date_naive(), now));
            self.table.write_settlement(subscription, cancelled).await.unwrap();
        }
    }

    /// Sets the clock to `time`, and runs the payment batch of that day.
    pub async fn run_payments(&self, time: &str) {
        self.clock.set(at(time));
        let request = BatchRequest::for_date(at(time).date_naive());
        self.payments.run(&request, at(time) + TimeDelta::hours(1)).await.unwrap();
    }
}

/// A world that sends each request with a token whose claim `sub` is `subject`.
pub struct WorldWithSubject<'a> {
    world: &'a World,
    subject: TokenSubject,
}

impl WorldWithSubject<'_> {
    /// Sends `request` as `caller`, like [`World::request_as`].
    pub async fn request_as(
        &self,
        caller: &Caller,
        request: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        self.world.send(Some(caller), Some(&self.subject), request, headers, body).await
    }
}

/// A clock that advances by a second each time it is read.
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

    fn random_secret(&self) -> [u8; 32] {
        self.0.random_secret()
    }
}

/// Parses the time `text`, such as `2026-03-05T12:00:00Z`.
pub fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// Returns the caller for the account `acme`.
pub fn acme() -> Caller {
    Caller::of_account(sample_account().id)
}

/// The body of a request that creates a subscription.
pub const NEW_SUBSCRIPTION: &str = r#"{
    "sku":"silver","product_name":"Silver plan","payment_day":10,"amount":599,"currency":"EUR",
    "payment_method":{"customer":"cus_1","payment_method":"pm_card_visa"},"first_payment_date":"2026-03-10"}"#;
