//! Every event of `events/` that starts the payment batch, through the real Lambda runtime loop.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use billing::Subscription;
use clock::{Clock, SystemClock};
use emulator::{Limits, STRIPE_KEY, StripeServer, gateway_router, serve};
use gateways::{Ledger, Sandbox};
use serde_json::{Value, json};
use store::{Batch, Created, Paging, Table};
use testkit::{Answer, Function, sample};

/// The time a Lambda invocation may take at most: 15 minutes.
fn deadline_ms() -> i64 {
    SystemClock.now().timestamp_millis() + 900_000
}

fn event(name: &str) -> String {
    let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

async fn gateway() -> (Arc<Sandbox>, String) {
    let sandbox = Arc::new(Sandbox::new(Ledger::memory(), Arc::new(SystemClock)));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = gateway_router(sandbox.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (sandbox, url)
}

/// A subscription whose payment is due on 31 March 2026.
async fn subscribe(table: &Table) -> Subscription {
    let subscription = sample::subscription(31, "2026-03-01".parse().unwrap());
    table.put_account(&sample::account()).await.unwrap();
    assert_eq!(table.create_subscription(&subscription, None).await.unwrap(), Created::Created);
    subscription
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_charge_what_is_due_for_every_sample_event() {
    for name in ["eventbridge-scheduled", "scheduler-default", "scheduler-scheduled-time", "batch-request"] {
        let (sandbox, url) = gateway().await;
        let mut function =
            Function::start(env!("CARGO_BIN_EXE_payments"), "payments", &[("DUEDAY_GATEWAY", &url)]).await;
        let subscription = subscribe(&function.table).await;

        let Answer::Response(report) = function.invoke(&event(name), deadline_ms()).await else { panic!("{name}") };
        assert_eq!((&report["batch"], &report["date"]), (&"payments".into(), &"2026-03-31".into()), "{name}");
        assert_eq!(
            (&report["complete"], &report["next"]),
            (&true.into(), &serde_json::Value::Null),
            "{name}: {report}"
        );
        assert_eq!((&report["counts"]["due"], &report["counts"]["paid"]), (&1.into(), &1.into()), "{name}: {report}");

        assert_eq!(sandbox.entries().len(), 1, "{name}: one charge");
        let receipts = function
            .table
            .get_receipts_by_account(&subscription.account, &Paging::all(), SystemClock.now())
            .await
            .unwrap()
            .items;
        assert_eq!(receipts.iter().map(|r| r.due_on.to_string()).collect::<Vec<_>>(), ["2026-03-31"], "{name}");
        let stored = function.table.get_subscription(&subscription.account, subscription.id).await.unwrap().unwrap();
        assert_eq!((stored.due_on.to_string(), stored.attempt), ("2026-04-30".to_owned(), None), "{name}");
        let runs = function
            .table
            .get_runs_by_date(Batch::Payments, "2026-03-31".parse().unwrap(), &Paging::all())
            .await
            .unwrap()
            .items;
        assert_eq!(runs.len(), 8, "{name}: one record a shard and lane");
        assert!(runs.iter().all(|run| run.end.is_some()), "{name}");

        let Answer::Response(again) = function.invoke(&event(name), deadline_ms()).await else { panic!("{name}") };
        assert_eq!((&again["counts"]["due"], sandbox.entries().len()), (&0.into(), 1), "{name}: delivered twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_take_part_in_an_execution_by_the_sample_events() {
    let (_sandbox, url) = gateway().await;
    let mut function = Function::start(env!("CARGO_BIN_EXE_payments"), "payments", &[("DUEDAY_GATEWAY", &url)]).await;
    subscribe(&function.table).await;
    let Answer::Response(begun) = function.invoke(&event("execution-begin"), deadline_ms()).await else { panic!() };
    assert_eq!((&begun["date"], begun["shards"].as_array().unwrap().len()), (&"2026-03-31".into(), 4));
    let Answer::Response(walked) = function.invoke(&event("execution-walk"), deadline_ms()).await else { panic!() };
    assert_eq!((&walked["complete"], &walked["counts"]["paid"]), (&true.into(), &1.into()), "{walked}");
    let Answer::Response(done) = function.invoke(&event("execution-finish"), deadline_ms()).await else { panic!() };
    assert_eq!(done["cause"], "3 of 4 shards are not done: shard 1 missing, shard 2 missing, shard 3 missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_start_no_charge_with_too_little_time_and_say_where_to_go_on() {
    let (sandbox, url) = gateway().await;
    let mut function = Function::start(env!("CARGO_BIN_EXE_payments"), "payments", &[("DUEDAY_GATEWAY", &url)]).await;
    subscribe(&function.table).await;
    let soon = SystemClock.now().timestamp_millis() + 20_000;
    let Answer::Response(report) = function.invoke(&event("batch-request"), soon).await else { panic!() };
    assert_eq!((&report["complete"], &report["counts"]["due"], sandbox.entries().len()), (&false.into(), &0.into(), 0));
    let mut request: serde_json::Value = serde_json::from_str(&event("batch-request")).unwrap();
    request["next"] = report["next"].clone();
    let Answer::Response(rest) = function.invoke(&request.to_string(), deadline_ms()).await else { panic!() };
    assert_eq!((&rest["complete"], &rest["counts"]["paid"], sandbox.entries().len()), (&true.into(), &1.into(), 1));
}

/// Where `routes` answer.
async fn served(routes: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve(listener, routes, Limits::default()));
    url
}

/// What Secrets Manager answers to `GetSecretValue`, of one secret.
async fn secret_value(asked: String) -> (StatusCode, Json<Value>) {
    let asked: Value = serde_json::from_str(&asked).unwrap();
    match asked["SecretId"].as_str() {
        Some("stripe-key") => (StatusCode::OK, Json(json!({"Name": "stripe-key", "SecretString": STRIPE_KEY}))),
        _ => (StatusCode::BAD_REQUEST, Json(json!({"__type": "ResourceNotFoundException", "Message": "none"}))),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_charge_by_stripe_with_the_key_that_secrets_manager_keeps() {
    let stripe = StripeServer::new(Arc::new(SystemClock));
    let base = served(stripe.clone().router()).await;
    let secrets = served(axum::Router::new().fallback(secret_value)).await;
    let variables = |secret| {
        [
            ("DUEDAY_GATEWAY", "stripe"),
            ("DUEDAY_STRIPE_KEY_SECRET_NAME", secret),
            ("STRIPE_API_BASE", base.as_str()),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", secrets.as_str()),
        ]
    };
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let path = env!("CARGO_BIN_EXE_payments");
    let mut function = Function::logging(path, "payments", &variables("stripe-key"), log).await;
    subscribe(&function.table).await;
    let Answer::Response(report) = function.invoke(&event("batch-request"), deadline_ms()).await else { panic!() };
    assert_eq!((&report["counts"]["paid"], stripe.intents().len()), (&1.into(), 1), "{report}");
    // At the level at which most is logged.
    let logged = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let address = sample::account().email;
    for secret in [STRIPE_KEY, address.as_str(), "pm_card_visa"] {
        assert!(!logged.is_empty() && !logged.contains(secret), "{secret} is logged: {logged}");
    }

    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_payments"));
    command.env_clear().envs(variables("another")).env("AWS_REGION", "eu-west-1");
    command.env("AWS_ACCESS_KEY_ID", "local").env("AWS_SECRET_ACCESS_KEY", "local");
    let ended = command.output().await.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && said.contains("DUEDAY_STRIPE_KEY_SECRET_NAME"), "{said}");
    assert!(said.contains("ResourceNotFoundException"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_refuse_what_is_not_understood_or_lies_ahead() {
    let (sandbox, url) = gateway().await;
    let mut function = Function::start(env!("CARGO_BIN_EXE_payments"), "payments", &[("DUEDAY_GATEWAY", &url)]).await;
    subscribe(&function.table).await;
    for (event, kind, said) in [
        (r#"{"date":"9999-12-31"}"#, "Future", "lies in the future"),
        (r#"{"date":"2026-03-31","shards":[4]}"#, "NoShard", "there is no shard 4"),
        (r#"{"date":"2026-03-31","shards":[]}"#, "Request", "must name at least one shard"),
        (r#"{"hello":"world"}"#, "Request", "not an event this function knows"),
        (r#"{"begin":{"execution":"e"}}"#, "Request", "missing field `scheduled_time`"),
    ] {
        let Answer::Error(error) = function.invoke(event, deadline_ms()).await else { panic!("{event}") };
        assert_eq!(error["errorType"], kind, "{event}");
        assert!(error["errorMessage"].as_str().unwrap().contains(said), "{event}: {error}");
    }
    assert_eq!(sandbox.entries(), []);
    assert_eq!(
        function
            .table
            .get_runs_by_date(Batch::Payments, "2026-03-31".parse().unwrap(), &Paging::all())
            .await
            .unwrap()
            .items,
        []
    );
}
