//! Tests that send events to the binary of the erase function, through the real Lambda runtime loop.

use billing::{ActionKind, Actor, NewAction};
use clock::{Clock as _, SystemClock};
use erasing::request_erasure;
use store::StoredAccount;
use testkit::{InvocationResult, LambdaFunction, sample_account};

/// Returns a deadline in 15 minutes, in milliseconds since 1970.
fn deadline_ms() -> i64 {
    SystemClock.now().timestamp_millis() + 900_000
}

#[tokio::test(flavor = "multi_thread")]
async fn erase_function_erases_a_requested_account_without_an_order_desk() {
    let path = env!("CARGO_BIN_EXE_erase");
    let mut function = LambdaFunction::start(path, "erase", &[("DUEDAY_ORDERS_TABLE", "")]).await;
    let account = sample_account();
    function.table.put_account(&account).await.unwrap();
    let InvocationResult::Response(idle) = function.invoke("{}", deadline_ms()).await else { panic!() };
    assert_eq!((&idle["erased"], &idle["failed"]), (&0.into(), &0.into()), "{idle}");
    assert!(function.table.get_account(&account.id).await.unwrap().is_some(), "no erasure was requested");

    let now = SystemClock.now();
    let action = NewAction { at: now, actor: Actor::Operator(None), kind: ActionKind::EraseAccount, reason: None };
    request_erasure(&function.table, &account.id, &action, now).await.unwrap();
    let InvocationResult::Response(response) = function.invoke("{}", deadline_ms()).await else { panic!() };
    assert_eq!((&response["erased"], &response["in_progress"]), (&1.into(), &0.into()), "{response}");
    let stored = function.table.get_stored_account(&account.id).await.unwrap();
    assert!(matches!(stored, Some(StoredAccount::Erased(_))), "{stored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn erase_function_rejects_an_invalid_event() {
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_erase"), "erase", &[]).await;
    let event = r#"{"account": "acme"}"#;
    let InvocationResult::Error(error) = function.invoke(event, deadline_ms()).await else { panic!() };
    assert_eq!(error["errorType"], "Request");
    assert!(error["errorMessage"].as_str().unwrap().contains("unknown field `account`"), "{error}");
}
