//! Tests of the function's binary, which receives its events from a stand-in for the Lambda Runtime API.

use std::path::PathBuf;

use clock::{Clock, SystemClock};
use serde_json::{Value, json};
use testkit::{InvocationResult, LambdaFunction, event_schema_errors};

use crate::event_bridge::{FakeBusBehavior, FakeEventBridge};
use crate::world::{batch_of_three_months, expected_event_ids, texts};

/// Returns the folder of the whole project.
fn project_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Starts the function's binary, which publishes on `bus`.
pub async fn start_function(bus: &FakeEventBridge) -> LambdaFunction {
    let variables = [("DUEDAY_EVENT_BUS", "dueday-events"), ("AWS_ENDPOINT_URL_EVENTBRIDGE", bus.url.as_str())];
    LambdaFunction::start(env!("CARGO_BIN_EXE_events"), "events", &variables).await
}

/// Invokes the function with the stream records in `batch`.
pub async fn invoke(function: &mut LambdaFunction, batch: &Value) -> InvocationResult {
    function.invoke(&batch.to_string(), SystemClock.now().timestamp_millis() + 60_000).await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_function_publishes_the_events_of_the_stream_of_the_engine() {
    let bus = FakeEventBridge::start(|_| FakeBusBehavior::Accepts).await;
    let (mut function, batch) = (start_function(&bus).await, batch_of_three_months().await);
    assert_eq!(invoke(&mut function, &batch).await, InvocationResult::Response(json!({ "batchItemFailures": [] })));

    let accepted = bus.accepted();
    assert_eq!(texts(&accepted, "id"), expected_event_ids(&batch));
    let types = texts(&accepted, "type");
    let count = |name: &str| types.iter().filter(|event_type| *event_type == name).count();
    assert_eq!((count("account.created"), count("subscription.created")), (1, 2));
    assert_eq!((count("payment.succeeded"), count("subscription.reminded")), (3, 4), "{types:?}");
    assert_eq!((count("payment.declined"), count("subscription.unpaid")), (5, 1), "{types:?}");
    for event in &accepted {
        assert_eq!(event["source"], "arn:aws:dynamodb:dynoxide:000000000000:table/dueday");
        let errors = event_schema_errors(event);
        assert!(errors.is_empty(), "{errors:?} {event:#}");
    }
    assert!(bus.accepted_entries().iter().all(|entry| entry["Source"] == "dueday"));
    let minimum = accepted.len().div_ceil(10);
    assert_eq!(bus.requests(), minimum, "each request has as many entries as possible");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_function_publishes_the_sample_event_and_rejects_invalid_batches() {
    let bus = FakeEventBridge::start(|_| FakeBusBehavior::Accepts).await;
    let mut function = start_function(&bus).await;
    let sample = std::fs::read_to_string(project_folder().join("events/dynamodb-stream.json")).unwrap();
    let result = invoke(&mut function, &serde_json::from_str(&sample).unwrap()).await;
    assert_eq!(result, InvocationResult::Response(json!({ "batchItemFailures": [] })));
    assert_eq!(texts(&bus.accepted(), "type"), ["subscription.created", "payment.succeeded"]);

    for invalid in [json!({}), json!({ "Records": [{ "dynamodb": {} }] })] {
        let InvocationResult::Error(error) = invoke(&mut function, &invalid).await else { panic!("{invalid}") };
        assert_eq!(error["errorType"], "Batch", "{error}");
    }
    assert_eq!(bus.accepted().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn response_of_the_events_function_contains_the_first_unpublished_record() {
    // The stand-in always rejects the third entry. Each retry contains only this entry, which then has the index 0.
    let behavior = |request: usize| FakeBusBehavior::RejectsEntry(if request == 0 { 2 } else { 0 });
    let bus = FakeEventBridge::start(behavior).await;
    let (mut function, mut batch) = (start_function(&bus).await, batch_of_three_months().await);
    batch["Records"].as_array_mut().unwrap().truncate(3);
    let third = batch["Records"][2]["dynamodb"]["SequenceNumber"].clone();
    let result = invoke(&mut function, &batch).await;
    assert_eq!(result, InvocationResult::Response(json!({ "batchItemFailures": [{ "itemIdentifier": third }] })));
    assert_eq!((texts(&bus.accepted(), "id").as_slice(), bus.requests()), (&expected_event_ids(&batch)[..2], 5));
}
