//! Sends every sample event of the payment batch in `events/` to the function, through the real Lambda runtime loop.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use billing::{PaymentMethod, Subscription, SubscriptionId};
use clock::{Clock, SystemClock};
use emulator::{STRIPE_KEY, ServerLimits, StripeServer, serve_http};
use sandbox::{Ledger, Sandbox, gateway_router};
use store::{Batch, CreateOutcome, Paging, Table};
use sweep::{ROW_FAILED_MESSAGE, ROW_PROCESSED_MESSAGE};
use testkit::{InvocationResult, LambdaFunction, sample_account, sample_subscription, start_secrets_manager};
use ulid::Ulid;

/// Returns a deadline in 15 minutes, the longest duration of a Lambda invocation, in milliseconds since 1970.
fn deadline_ms() -> i64 {
    SystemClock.now().timestamp_millis() + 900_000
}

/// Returns the content of the sample event `events/<name>.json`.
fn sample_event(name: &str) -> String {
    let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// Starts a sandbox gateway. Returns the gateway and its URL.
async fn start_gateway() -> (Arc<Sandbox>, String) {
    let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), Arc::new(SystemClock)));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = gateway_router(sandbox.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (sandbox, url)
}

/// Creates a subscription whose payment is due on 31 March 2026.
async fn create_due_subscription(table: &Table) -> Subscription {
    let subscription = sample_subscription(31, "2026-03-01".parse().unwrap());
    table.put_account(&sample_account()).await.unwrap();
    assert_eq!(table.create_subscription(&subscription, None).await.unwrap(), CreateOutcome::Created);
    subscription
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_charge_due_subscriptions_for_every_sample_event() {
    for name in ["eventbridge-scheduled", "scheduler-default", "scheduler-scheduled-time", "batch-request"] {
        let (sandbox, url) = start_gateway().await;
        let mut function =
            LambdaFunction::start(env!("CARGO_BIN_EXE_payments"), "payments", &[("DUEDAY_GATEWAY", &url)]).await;
        let subscription = create_due_subscription(&function.table).await;

        let InvocationResult::Response(report) = function.invoke(&sample_event(name), deadline_ms()).await else {
            panic!("{name}")
        };
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
        assert_eq!(runs.len(), 8, "{name}: one record per shard and lane");
        assert!(runs.iter().all(|run| run.end.is_some()), "{name}");

        let InvocationResult::Response(again) = function.invoke(&sample_event(name), deadline_ms()).await else {
            panic!("{name}")
        };
        assert_eq!((&again["counts"]["due"], sandbox.entries().len()), (&0.into(), 1), "{name}: delivered twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_process_a_daily_execution_with_the_sample_events() {
    let (_sandbox, url) = start_gateway().await;
    let mut function =
        LambdaFunction::start(env!("CARGO_BIN_EXE_payments"), "payments", &[("DUEDAY_GATEWAY", &url)]).await;
    create_due_subscription(&function.table).await;
    let InvocationResult::Response(begun) = function.invoke(&sample_event("execution-begin"), deadline_ms()).await
    else {
        panic!()
    };
    assert_eq!((&begun["date"], begun["shards"].as_array().unwrap().len()), (&"2026-03-31".into(), 4));
    let InvocationResult::Response(walked) = function.invoke(&sample_event("execution-walk"), deadline_ms()).await
    else {
        panic!()
    };
    assert_eq!((&walked["complete"], &walked["counts"]["paid"]), (&true.into(), &1.into()), "{walked}");
    let InvocationResult::Response(done) = function.invoke(&sample_event("execution-finish"), deadline_ms()).await
    else {
        panic!()
    };
    assert_eq!(done["cause"], "3 of 4 shards are not done: shard 1 missing, shard 2 missing, shard 3 missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_start_no_charge_without_enough_time_and_return_the_position_to_continue_from() {
    let (sandbox, url) = start_gateway().await;
    let mut function =
        LambdaFunction::start(env!("CARGO_BIN_EXE_payments"), "payments", &[("DUEDAY_GATEWAY", &url)]).await;
    create_due_subscription(&function.table).await;
    let soon = SystemClock.now().timestamp_millis() + 20_000;
    let InvocationResult::Response(report) = function.invoke(&sample_event("batch-request"), soon).await else {
        panic!()
    };
    assert_eq!((&report["complete"], &report["counts"]["due"], sandbox.entries().len()), (&false.into(), &0.into(), 0));
    let mut request: serde_json::Value = serde_json::from_str(&sample_event("batch-request")).unwrap();
    request["next"] = report["next"].clone();
    let InvocationResult::Response(rest) = function.invoke(&request.to_string(), deadline_ms()).await else { panic!() };
    assert_eq!((&rest["complete"], &rest["counts"]["paid"], sandbox.entries().len()), (&true.into(), &1.into(), 1));
}

/// Serves `routes` and returns their base URL.
async fn serve_routes(routes: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, routes, ServerLimits::default()));
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_charge_at_stripe_with_key_from_secrets_manager() {
    let stripe = StripeServer::new(Arc::new(SystemClock));
    let base = serve_routes(stripe.clone().router()).await;
    let secrets = start_secrets_manager(&[("stripe-key", STRIPE_KEY)]).await;
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
    let mut function = LambdaFunction::start_with_log(path, "payments", &variables("stripe-key"), log).await;
    create_due_subscription(&function.table).await;
    let InvocationResult::Response(report) = function.invoke(&sample_event("batch-request"), deadline_ms()).await
    else {
        panic!()
    };
    assert_eq!((&report["counts"]["paid"], stripe.intents().len()), (&1.into(), 1), "{report}");
    // The function runs with the most verbose log level, but must not log the API key, the address or the payment
    // method.
    let logged = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let address = sample_account().email;
    for secret in [STRIPE_KEY, address.as_str(), "pm_card_visa"] {
        assert!(!logged.is_empty() && !logged.contains(secret), "{secret} is logged: {logged}");
    }

    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_payments"));
    command.env_clear().envs(variables("another")).env("AWS_REGION", "eu-west-1");
    command.env("AWS_ACCESS_KEY_ID", "local").env("AWS_SECRET_ACCESS_KEY", "local");
    let ended = command.output().await.unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && stderr.contains("DUEDAY_STRIPE_KEY_SECRET_NAME"), "{stderr}");
    assert!(stderr.contains("ResourceNotFoundException"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_reject_invalid_and_future_requests() {
    let (sandbox, url) = start_gateway().await;
    let mut function =
        LambdaFunction::start(env!("CARGO_BIN_EXE_payments"), "payments", &[("DUEDAY_GATEWAY", &url)]).await;
    create_due_subscription(&function.table).await;
    // The columns are: the event, the type of the expected error, and a part of its message.
    for (event, kind, message) in [
        (r#"{"date":"9999-12-31"}"#, "Future", "lies in the future"),
        (r#"{"date":"2026-03-31","shards":[4]}"#, "NoShard", "there is no shard 4"),
        (r#"{"date":"2026-03-31","shards":[]}"#, "Request", "must contain at least one shard"),
        (r#"{"hello":"world"}"#, "Request", "the event is not valid"),
        (r#"{"begin":{"execution":"e"}}"#, "Request", "missing field `scheduled_time`"),
    ] {
        let InvocationResult::Error(error) = function.invoke(event, deadline_ms()).await else { panic!("{event}") };
        assert_eq!(error["errorType"], kind, "{event}");
        assert!(error["errorMessage"].as_str().unwrap().contains(message), "{event}: {error}");
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

/// Fails each request whose body or URL contains the customer `cus_unreachable`, like a gateway that is not available.
async fn fail_for_one_customer(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let is_unreachable = String::from_utf8_lossy(&body).contains("cus_unreachable");
    match is_unreachable || parts.uri.to_string().contains("cus_unreachable") {
        true => axum::http::StatusCode::SERVICE_UNAVAILABLE.into_response(),
        false => next.run(Request::from_parts(parts, body.into())).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_log_one_line_for_each_decided_row_without_personal_data() {
    let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), Arc::new(SystemClock)));
    let url = serve_routes(gateway_router(sandbox).layer(from_fn(fail_for_one_customer))).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (binary, log) = (env!("CARGO_BIN_EXE_payments"), std::fs::File::create(&path).unwrap());
    let mut function = LambdaFunction::start_with_log(binary, "payments", &[("DUEDAY_GATEWAY", &url)], log).await;
    let cases = [
        // The columns are: (account, customer, payment method, open findings), and the expected log line: (level,
        // outcome, type of the error).
        (("paid", "cus_1", "pm_card_visa", 0), ("DEBUG", "paid", "")),
        (("declined", "cus_2", "pm_card_visa_chargeDeclined", 0), ("INFO", "declined", "")),
        (("rejected", "cus_3", "pm_unknown", 0), ("INFO", "rejected", "")),
        (("unreachable", "cus_unreachable", "pm_card_visa", 0), ("INFO", "in_doubt", "")),
        (("failed", "cus_4", "pm_card_visa", 1), ("ERROR", "", "OpenFinding")),
    ];
    for (n, ((account, customer, method, open_findings), _)) in (0_u32..).zip(cases) {
        let payment_method =
            PaymentMethod { customer: customer.parse().unwrap(), payment_method: method.parse().unwrap() };
        let (id, account) = (SubscriptionId::new(Ulid::from_parts(2, n.into())), account.parse().unwrap());
        let subscription = Subscription {
            id,
            account,
            shard: n % 4,
            payment_method,
            open_findings,
            ..sample_subscription(31, "2026-03-01".parse().unwrap())
        };
        let account = billing::Account { id: subscription.account.clone(), ..sample_account() };
        function.table.put_account(&account).await.unwrap();
        function.table.create_subscription(&subscription, None).await.unwrap();
    }
    function.invoke(&sample_event("batch-request"), deadline_ms()).await;
    let runs = function.table.get_runs_by_date(Batch::Payments, "2026-03-31".parse().unwrap(), &Paging::all()).await;
    let runs: Vec<(String, u32)> = runs.unwrap().items.iter().map(|run| (run.id.to_string(), run.shard)).collect();

    let log = std::fs::read_to_string(&path).unwrap();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let is_row = |line: &serde_json::Value| {
        [ROW_PROCESSED_MESSAGE, ROW_FAILED_MESSAGE].iter().any(|message| line["fields"]["message"] == *message)
    };
    let rows: Vec<serde_json::Value> = lines.filter(is_row).collect();
    assert_eq!(rows.len(), cases.len(), "{log}");
    for ((account, customer, method, _), (level, outcome, error_type)) in cases.map(|(row, line)| (row, line)) {
        let row = rows.iter().find(|row| row["fields"]["account"] == account).unwrap();
        let fields = &row["fields"];
        let text = |name: &str| fields[name].as_str().unwrap_or_default();
        assert_eq!((&row["level"], text("outcome"), text("error_type")), (&level.into(), outcome, error_type), "{row}");
        assert_eq!((text("batch"), text("due_on")), ("payments", "2026-03-31"), "{row}");
        let run = (text("run").to_owned(), fields["shard"].as_u64().unwrap().try_into().unwrap());
        assert!(runs.contains(&run), "the run and the shard of a run record: {row}");
        assert!(text("subscription").parse::<Ulid>().is_ok(), "{row}");
        assert_eq!(row["spans"][0]["requestId"], "8476a536-e9f4-11e8-9739-2dfe598c3fcd", "{row}");
        let line = row.to_string();
        assert!(!line.contains('@') && !line.contains(customer) && !line.contains(method), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_commands_of_payments_function_succeed() {
    for report in &testkit::run_sam_local_commands("PaymentsFunction", env!("CARGO_BIN_EXE_payments")).await {
        assert_eq!(report["complete"], true, "{report}");
    }
}
