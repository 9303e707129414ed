//! Tests that send events to the binary of the reconcile function, through the real Lambda runtime loop.

use std::sync::Arc;

use billing::{DayReconciliation, ReconciledCounts};
use chrono::{Days, NaiveDate};
use clock::{Clock as _, SystemClock};
use emulator::{ServerLimits, serve_http};
use gateways::ChargeRequest;
use reconciling::latest_comparable_day;
use sandbox::{Ledger, Sandbox, gateway_router};
use store::Settings;
use testkit::{InvocationResult, LambdaFunction, read_test_config, sample_subscription};
use ulid::Ulid;

/// Returns a deadline in 15 minutes, in milliseconds since 1970.
fn deadline_ms() -> i64 {
    SystemClock.now().timestamp_millis() + 900_000
}

/// Starts the function with a table that contains the settings item, and with a sandbox gateway.
async fn start() -> (LambdaFunction, Arc<Sandbox>, Settings) {
    start_with(read_test_config(&[]).unwrap().table.initial_settings(&SystemClock)).await
}

/// Starts the function like [`start`], with a table that has the settings `initial`.
async fn start_with(initial: Settings) -> (LambdaFunction, Arc<Sandbox>, Settings) {
    let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), Arc::new(SystemClock)));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, gateway_router(sandbox.clone()), ServerLimits::default()));
    let path = env!("CARGO_BIN_EXE_reconcile");
    let function = LambdaFunction::start(path, "reconcile", &[("DUEDAY_GATEWAY", &url)]).await;
    let settings = function.table.init_settings(&initial).await.unwrap();
    (function, sandbox, settings)
}

/// Makes a payment at the gateway at noon of the day `on`, without a receipt.
fn charge(sandbox: &Sandbox, on: NaiveDate, settings: &Settings) {
    let gold = sample_subscription(10, "2026-03-01".parse().unwrap());
    let request = ChargeRequest {
        idempotency_key: "key".to_owned(),
        table: Some(settings.table_id),
        account: gold.account,
        subscription: gold.id,
        sku: gold.sku,
        due_on: on,
        attempt_no: 1,
        amount: gold.price,
        payment_method: gold.payment_method,
    };
    let noon = on.and_hms_opt(12, 0, 0).unwrap().and_utc();
    sandbox.charge_at(&request, noon).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reconcile_function_compares_the_latest_day_once_and_a_requested_day_again() {
    let (mut function, sandbox, settings) = start().await;
    let latest = latest_comparable_day(SystemClock.now());
    let before = latest.checked_sub_days(Days::new(1)).unwrap();
    charge(&sandbox, before, &settings);

    let InvocationResult::Response(response) = function.invoke("{}", deadline_ms()).await else { panic!() };
    assert_eq!((&response["complete"], &response["clean"]), (&true.into(), &true.into()), "{response}");
    let event = format!(r#"{{"date": "{before}"}}"#);
    for _ in 0..2 {
        let InvocationResult::Response(response) = function.invoke(&event, deadline_ms()).await else { panic!() };
        assert_eq!((&response["complete"], &response["clean"]), (&true.into(), &false.into()), "{response}");
        assert_eq!((&response["date"], &response["differences"]), (&before.to_string().into(), &1.into()));
    }
    let stored = function.table.get_reconciliation(latest).await.unwrap().unwrap();
    let InvocationResult::Response(again) = function.invoke("{}", deadline_ms()).await else { panic!() };
    assert_eq!(again["date"], latest.to_string());
    let unchanged = function.table.get_reconciliation(latest).await.unwrap();
    assert_eq!(unchanged, Some(stored), "the latest day is compared once");
}

#[tokio::test(flavor = "multi_thread")]
async fn reconcile_function_compares_the_missed_days_since_the_table_was_created() {
    let latest = latest_comparable_day(SystemClock.now());
    let day = |ago: u64| latest.checked_sub_days(Days::new(ago)).unwrap();
    let created_at = u64::try_from(day(3).and_hms_opt(1, 0, 0).unwrap().and_utc().timestamp_millis()).unwrap();
    let (mut function, sandbox, settings) = start_with(Settings::new(4, Ulid::from_parts(created_at, 1))).await;
    charge(&sandbox, day(2), &settings);
    let InvocationResult::Response(response) = function.invoke("{}", deadline_ms()).await else { panic!() };
    assert_eq!(response["date"], day(3).to_string(), "the last one of the missed days");
    for (ago, differences) in [(0, Some(0)), (1, Some(0)), (2, Some(1)), (3, Some(0)), (4, None)] {
        let stored = function.table.get_reconciliation(day(ago)).await.unwrap();
        assert!(stored.as_ref().is_none_or(|day| day.ended_at.is_some()), "{ago} days ago");
        assert_eq!(stored.map(|day| day.difference_count()), differences, "{ago} days ago");
    }
    let InvocationResult::Response(again) = function.invoke("{}", deadline_ms()).await else { panic!() };
    assert_eq!((&again["date"], &again["differences"]), (&latest.to_string().into(), &0.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn reconcile_function_compares_interrupted_days_and_days_with_processing_payments_again() {
    let (mut function, sandbox, settings) = start().await;
    let latest = latest_comparable_day(SystemClock.now());
    let day = |ago: u64| latest.checked_sub_days(Days::new(ago)).unwrap();
    charge(&sandbox, day(26), &settings);
    // The columns are: how many days ago the day was, the number of payments that the bank was processing, whether the
    // comparison has ended, and whether the day must be compared again.
    let cases =
        [(26, 1, true, true), (40, 1, true, true), (20, 1, true, false), (30, 0, false, true), (31, 0, true, false)];
    for (ago, processing, has_ended, _) in cases {
        let started_at = day(ago - 1).and_hms_opt(2, 0, 0).unwrap().and_utc();
        let new = DayReconciliation::new(day(ago), started_at);
        let counts = ReconciledCounts { processing, ..new.counts };
        let compared = DayReconciliation { counts, ended_at: has_ended.then_some(started_at), ..new };
        assert!(function.table.create_reconciliation(&compared).await.unwrap());
    }
    let InvocationResult::Response(_) = function.invoke("{}", deadline_ms()).await else { panic!() };
    for (ago, _, _, is_compared_again) in cases {
        let stored = function.table.get_reconciliation(day(ago)).await.unwrap().unwrap();
        assert!(stored.ended_at.is_some(), "{ago} days ago");
        assert_eq!(
            stored.counts.processing == 0 && stored.version > 1,
            is_compared_again,
            "{ago} days ago: {stored:?}"
        );
    }
    let late = function.table.get_reconciliation(day(26)).await.unwrap().unwrap();
    assert_eq!(late.difference_count(), 1, "the late success without a receipt is found: {late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reconcile_function_rejects_invalid_events_and_days_that_have_not_ended() {
    let (mut function, _, _) = start().await;
    for (event, kind, message) in [
        (r#"{"day": "2026-03-10"}"#, "Request", "unknown field `day`"),
        (r#"{"date": "2026-3-1"}"#, "Request", "must be a date like 2027-01-31"),
        (r#"{"date": "9998-12-31"}"#, "Day", "can be compared from 9999-01-01"),
        (r#"{"date": "2000-01-01"}"#, "Day", "have expired"),
    ] {
        let InvocationResult::Error(error) = function.invoke(event, deadline_ms()).await else { panic!("{event}") };
        assert_eq!(error["errorType"], kind, "{event}: {error}");
        assert!(error["errorMessage"].as_str().unwrap().contains(message), "{event}: {error}");
    }
}
