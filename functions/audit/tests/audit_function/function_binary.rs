//! Tests that send events to the binary of the audit function, through the real Lambda runtime loop.

use billing::{AuditRecord, Subscription};
use chrono::{Days, TimeDelta};
use clock::{Clock as _, SystemClock};
use orders_table::OrdersTable;
use serde_json::Value;
use store::{Batch, Paging, ReminderCounts, RunCounts, RunEnd, RunRecord, RunSums};
use testkit::{InvocationResult, LambdaFunction, read_test_config, sample_account, sample_subscription};

/// Returns the deadline of an invocation that ends in `seconds` seconds, in milliseconds since 1970.
fn deadline_ms(seconds: i64) -> i64 {
    SystemClock.now().timestamp_millis() + seconds * 1_000
}

/// Starts the function with a table that contains the settings item.
async fn start() -> LambdaFunction {
    let function = LambdaFunction::start(env!("CARGO_BIN_EXE_audit"), "audit", &[]).await;
    let initial = read_test_config(&[]).unwrap().table.initial_settings(&SystemClock);
    function.table.init_settings(&initial).await.unwrap();
    function
}

/// Returns the record of a reminder run that has completed `shard` today. No reminder was due.
fn complete_reminders(shard: u32, shards: u32) -> RunRecord {
    let now = SystemClock.now();
    let end = RunEnd {
        ended_at: now,
        counts: RunCounts::Reminders(ReminderCounts::default()),
        sums: RunSums::default(),
        next: None,
        stopped: None,
    };
    RunRecord {
        batch: Batch::Reminders,
        on: now.date_naive(),
        shard,
        id: SystemClock.ulid(),
        started_at: now,
        deadline: Some(now),
        shards: Some(shards),
        from: None,
        end: Some(end),
    }
}

/// Invokes the function for the check `check`, with a deadline in `seconds` seconds. Returns the response.
async fn invoke(function: &mut LambdaFunction, check: &str, seconds: i64) -> Value {
    let result = function.invoke(&format!(r#"{{"check": "{check}"}}"#), deadline_ms(seconds)).await;
    let InvocationResult::Response(response) = result else { panic!("{check}: {result:?}") };
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn function_continues_its_audit_until_all_accounts_are_checked() {
    let mut function = start().await;
    let today = SystemClock.now().date_naive();
    function.table.put_account(&sample_account()).await.unwrap();
    // This subscription is the violation: it is stored without a payment date, so it has no index entry, and no run
    // would charge it.
    let gold = sample_subscription(10, today.checked_sub_days(Days::new(3)).unwrap());
    let lost = Subscription { next_payment_on: None, ..gold };
    function.table.create_subscription(&lost, None).await.unwrap();

    // This invocation has too little time to check an account: the function stops 30 seconds before the invocation's
    // deadline.
    let first = invoke(&mut function, "table", 20).await;
    assert_eq!((&first["complete"], &first["accounts"]), (&false.into(), &0.into()), "{first}");
    let second = invoke(&mut function, "table", 900).await;
    assert_eq!(second["audit"], first["audit"], "the audit is continued");
    assert_eq!((&second["complete"], &second["accounts"]), (&true.into(), &1.into()), "{second}");
    assert!(second["violations"].as_u64() > Some(0), "{second}");
    let third = invoke(&mut function, "table", 900).await;
    assert_ne!(third["audit"], first["audit"], "a new audit begins");

    let stored = function.table.get_audits(&Paging::all(), SystemClock.now()).await.unwrap().items;
    assert_eq!(stored.len(), 2);
    assert!(stored.iter().all(|audit| audit.is_scheduled && audit.ended_at.is_some()), "{stored:?}");
    assert!(stored[1].violations.contains_key("indexed"), "{stored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn function_leaves_an_audit_of_a_person_alone() {
    let mut function = start().await;
    let now = SystemClock.now();
    let manual = AuditRecord::new(SystemClock.ulid(), false, now);
    function.table.create_audit(&manual).await.unwrap();
    let response = invoke(&mut function, "table", 900).await;
    assert_ne!(response["audit"], manual.id.to_string());
    assert_eq!(function.table.get_audit(manual.id, now).await.unwrap(), Some(manual));
}

#[tokio::test(flavor = "multi_thread")]
async fn function_names_the_batches_of_today_that_are_not_done() {
    let mut function = start().await;
    let open = invoke(&mut function, "day", 900).await;
    assert_eq!(open["not_done"], serde_json::json!(["reminders", "payments"]), "{open}");

    let settings = function.table.get_settings().await.unwrap().unwrap();
    for shard in 0..settings.shards {
        function.table.put_run_record(&complete_reminders(shard, settings.shards)).await.unwrap();
    }
    let done = invoke(&mut function, "day", 900).await;
    assert_eq!(done["not_done"], serde_json::json!(["payments"]), "{done}");

    let complete = complete_reminders(0, settings.shards);
    let running = RunRecord { deadline: Some(complete.started_at + TimeDelta::hours(1)), end: None, ..complete };
    function.table.put_run_record(&running).await.unwrap();
    let again = invoke(&mut function, "day", 900).await;
    assert_eq!(again["not_done"], done["not_done"], "another run is processing a complete shard: {again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn function_reads_the_table_of_the_order_desk_that_its_variable_names() {
    let variables = [("DUEDAY_ORDERS_TABLE", "shop-orders")];
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_audit"), "audit", &variables).await;
    let initial = read_test_config(&[]).unwrap().table.initial_settings(&SystemClock);
    function.table.init_settings(&initial).await.unwrap();
    let result = function.invoke(r#"{"check": "table"}"#, deadline_ms(900)).await;
    let InvocationResult::Error(error) = result else { panic!("{result:?}") };
    assert_eq!(error["errorType"], "Table", "there is no such table: {error}");
    OrdersTable::new(function.table.client().clone(), "shop-orders").create_if_absent().await.unwrap();
    let response = invoke(&mut function, "table", 900).await;
    assert_eq!((&response["complete"], &response["orders"]), (&true.into(), &0.into()), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn function_rejects_invalid_events() {
    let mut function = start().await;
    for (event, message) in [("{}", "missing field `check`"), (r#"{"check": "shards"}"#, "unknown variant `shards`")] {
        let InvocationResult::Error(error) = function.invoke(event, deadline_ms(900)).await else { panic!("{event}") };
        assert_eq!(error["errorType"], "Request", "{event}: {error}");
        assert!(error["errorMessage"].as_str().unwrap().contains(message), "{event}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_commands_of_audit_function_succeed() {
    for report in &testkit::run_sam_local_commands("AuditFunction", env!("CARGO_BIN_EXE_audit")).await {
        assert!(report.is_object(), "{report}");
    }
}
