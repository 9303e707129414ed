//! `cargo bench -p bench --bench requests`: measures the processor time of the two DynamoDB requests of a payment, the
//! claim and the settlement, from the call to the parsed response. The table responds immediately, without sockets.

use std::sync::{Arc, Mutex};

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::config::{Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use billing::{AttemptOutcome, ClaimToken, Payment, PaymentStatus, Policy, Subscription, settle_open_attempt};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use config::Env;
use deployment::DeploymentConfig;
use divan::{AllocProfiler, Bencher};
use emulator::{Engine, EngineConnection, RequestObserver};
use serde_json::Value;
use store::{Claim, ClaimOutcome, SubscriptionKey, Table};
use testkit::{sample_account, sample_subscription};
use tokio::runtime::{Builder, Runtime};
use ulid::Ulid;

/// The allocator that counts the allocations of each benchmark.
#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

/// The name of the table to which the requests are sent.
const TABLE: &str = "dueday";

fn main() {
    divan::main();
}

/// Returns the fixed instant that the benchmarks use as the current time.
fn fixed_now() -> DateTime<Utc> {
    "2028-01-31T06:00:00Z".parse().expect("an instant")
}

fn fixed_today() -> NaiveDate {
    fixed_now().date_naive()
}

/// Creates the runtime that executes the requests on the thread of the benchmark.
fn create_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The successful responses of the embedded engine (the local replacement of DynamoDB), each with its operation.
#[derive(Default)]
struct EngineResponses(Mutex<Vec<(String, String)>>);

impl RequestObserver for EngineResponses {
    fn observe_response(&self, operation: &str, _request: &Value, response: Result<&str, &str>) {
        if let Ok(response) = response {
            self.0.lock().expect("no panic").push((operation.to_owned(), response.to_owned()));
        }
    }
}

/// An HTTP client that immediately returns the last recorded response to an operation.
#[derive(Clone, Debug)]
struct RecordedClient(Arc<Vec<(String, String)>>);

impl HttpClient for RecordedClient {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for RecordedClient {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        let (_, body) = self.0.iter().rfind(|(recorded, _)| recorded == operation).expect("a recorded response");
        let mut response = HttpResponse::new(200.try_into().expect("a status"), SdkBody::from(body.as_str()));
        response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
        HttpConnectorFuture::ready(Ok(response))
    }
}

/// A due payment of a subscription in a table that responds immediately.
struct DuePayment {
    table: Table,
    /// The subscription's key before the claim.
    key: SubscriptionKey,
    /// The subscription after the claim.
    claimed: Subscription,
}

/// Returns the claim with which the benchmarks claim the payment.
fn sample_claim() -> Claim {
    Claim {
        token: ClaimToken(Ulid::from_parts(1, 1)),
        now: fixed_now(),
        leased_until: fixed_now() + TimeDelta::minutes(20),
    }
}

/// Claims a payment in a table of the embedded engine, and records the engine's responses. Returns the claimed payment,
/// with a table that responds with the recorded responses.
fn create_due_payment(runtime: &Runtime) -> DuePayment {
    let responses = Arc::new(EngineResponses::default());
    let engine = Engine::in_memory();
    let table = Table::new(
        engine.client_with_connection(Arc::new(EngineConnection::default().with_observer(responses.clone()))),
        TABLE,
    );
    let due = Subscription { next_reminder_on: None, ..sample_subscription(31, fixed_today() - TimeDelta::days(31)) };
    let due = Subscription { due_on: fixed_today(), next_payment_on: Some(fixed_today()), ..due };
    let key = SubscriptionKey::from_subscription(&due);
    let claimed = runtime.block_on(async {
        table.create_if_absent().await.expect("a table");
        table.put_account(&sample_account()).await.expect("an account");
        table.create_subscription(&due, None).await.expect("a subscription");
        let page = table.get_due_payments_by_date(0, fixed_today(), None, 200).await.expect("a page");
        assert_eq!(page.rows.len(), 1);
        match table.claim_payment(&key, fixed_today(), Ulid::nil(), sample_claim()).await.expect("a claim") {
            ClaimOutcome::Claimed(claimed) => *claimed,
            ClaimOutcome::Refused(stored) => panic!("refused: {stored:?}"),
        }
    });
    let responses = responses.0.lock().expect("no panic").clone();
    let table = runtime.block_on(async {
        let config = DeploymentConfig::read(Env(&|_| None)).expect("defaults");
        let sdk = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .http_client(RecordedClient(Arc::new(responses)))
            .load()
            .await;
        config.table.connect(&sdk)
    });
    DuePayment { table, key, claimed }
}

/// Measures the request that claims a payment before its charge.
#[divan::bench]
fn claim_payment(bencher: Bencher<'_, '_>) {
    let runtime = create_runtime();
    let due = create_due_payment(&runtime);
    bencher.bench_local(|| {
        runtime.block_on(due.table.claim_payment(&due.key, fixed_today(), Ulid::nil(), sample_claim()))
    });
}

/// Measures the request that stores the result of a successful payment.
#[divan::bench]
fn settle_payment(bencher: Bencher<'_, '_>) {
    let runtime = create_runtime();
    let due = create_due_payment(&runtime);
    let attempt = due.claimed.attempt.clone().expect("an attempt");
    let outcome = AttemptOutcome::Succeeded(Payment {
        id: "pay_1".parse().expect("a token"),
        table: attempt.table,
        account: due.claimed.account.clone(),
        subscription: due.claimed.id,
        due_on: attempt.due_on,
        attempt_no: attempt.no,
        amount: attempt.amount,
        status: PaymentStatus::Succeeded,
        card: None,
        created_at: fixed_now(),
    });
    let policy = Policy::default();
    let compute =
        |stored: &Subscription| settle_open_attempt(stored, &attempt, &outcome, &policy, fixed_today(), fixed_now());
    bencher
        .with_inputs(|| due.claimed.clone())
        .bench_local_values(|claimed| runtime.block_on(due.table.write_settlement(claimed, compute)).expect("settled"));
}
