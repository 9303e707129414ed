//! `cargo bench -p bench --bench requests`: what the processor does for each request of a payment, from the call to the
//! answer that is read, with a table that answers at once. Only the sockets are missing.

use std::sync::{Arc, Mutex};

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::config::{Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use billing::{Outcome, Payment, PaymentStatus, Policy, Settled, Subscription, Token, settle};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use config::Env;
use divan::{AllocProfiler, Bencher};
use emulator::{Config, Engine, Wire, Witness};
use serde_json::Value;
use store::{Claim, Claimed, SubscriptionKey, Table};
use testkit::sample;
use tokio::runtime::{Builder, Runtime};
use ulid::Ulid;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const TABLE: &str = "dueday";

fn main() {
    divan::main();
}

fn now() -> DateTime<Utc> {
    "2028-01-31T06:00:00Z".parse().expect("an instant")
}

fn today() -> NaiveDate {
    now().date_naive()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn kept() -> TimeDelta {
    TimeDelta::days(190)
}

/// The answer to each operation, as the engine gave it last.
#[derive(Default)]
struct Answers(Mutex<Vec<(String, String)>>);

impl Witness for Answers {
    fn saw(&self, operation: &str, _request: &Value, answer: Result<&str, &str>) {
        if let Ok(answer) = answer {
            self.0.lock().expect("no panic").push((operation.to_owned(), answer.to_owned()));
        }
    }
}

/// A table that gives the same answer to each request of an operation.
#[derive(Clone, Debug)]
struct AtOnce(Arc<Vec<(String, String)>>);

impl HttpClient for AtOnce {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for AtOnce {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        let (_, answer) = self.0.iter().rfind(|(of, _)| of == operation).expect("an answer");
        let mut response = HttpResponse::new(200.try_into().expect("a status"), SdkBody::from(answer.as_str()));
        response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
        HttpConnectorFuture::ready(Ok(response))
    }
}

/// A payment that is due, as the index shows it and as it is claimed, and a table that answers at once.
struct Due {
    table: Table,
    key: SubscriptionKey,
    claimed: Subscription,
}

fn claim() -> Claim {
    Claim { token: Token(Ulid::from_parts(1, 1)), now: now(), leased_until: now() + TimeDelta::minutes(20) }
}

fn due(runtime: &Runtime) -> Due {
    let answers = Arc::new(Answers::default());
    let engine = Engine::memory();
    let table = Table::new(engine.client_over(Arc::new(Wire::default().and_witness(answers.clone()))), TABLE, kept());
    let due = Subscription { next_reminder_on: None, ..sample::subscription(31, today() - TimeDelta::days(31)) };
    let due = Subscription { due_on: today(), next_payment_on: Some(today()), ..due };
    let key = SubscriptionKey::of(&due);
    let claimed = runtime.block_on(async {
        table.create_if_absent().await.expect("a table");
        table.put_account(&sample::account()).await.expect("an account");
        table.create_subscription(&due, None).await.expect("a subscription");
        let page = table.get_due_payments_by_date(0, today(), None, 200).await.expect("a page");
        assert_eq!(page.rows.len(), 1);
        match table.claim_payment(&key, today(), Ulid::nil(), claim()).await.expect("a claim") {
            Claimed::Held(held) => *held,
            Claimed::Refused(stored) => panic!("refused: {stored:?}"),
        }
    });
    let answers = answers.0.lock().expect("no panic").clone();
    let table = runtime.block_on(async {
        let config = Config::read(Env(&|_| None)).expect("defaults");
        let sdk = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .http_client(AtOnce(Arc::new(answers)))
            .load()
            .await;
        config.table.over(&sdk)
    });
    Due { table, key, claimed }
}

#[divan::bench]
fn claim_payment(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let due = due(&runtime);
    bencher.bench_local(|| runtime.block_on(due.table.claim_payment(&due.key, today(), Ulid::nil(), claim())));
}

#[divan::bench]
fn settle_payment(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let due = due(&runtime);
    let attempt = due.claimed.attempt.clone().expect("an attempt");
    let outcome = Outcome::Succeeded(Payment {
        id: "pay_1".parse().expect("a token"),
        table: attempt.table,
        account: due.claimed.account.clone(),
        subscription: due.claimed.id,
        due_on: attempt.due_on,
        attempt_no: attempt.no,
        amount: attempt.amount,
        status: PaymentStatus::Succeeded,
        card: None,
        created_at: now(),
    });
    let policy = Policy::default();
    let compute = |stored: &Subscription| match settle(stored, &attempt, &outcome, &policy, today(), now()) {
        Settled::Write(settlement) => Ok(*settlement),
        other => Err(other),
    };
    bencher
        .with_inputs(|| due.claimed.clone())
        .bench_local_values(|claimed| runtime.block_on(due.table.settle(claimed, compute)).expect("settled"));
}
