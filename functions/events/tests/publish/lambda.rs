//! The function's binary, fed over the Runtime API.

use std::path::PathBuf;

use clock::{Clock, SystemClock};
use serde_json::{Value, json};
use testkit::{Answer, Function};

use crate::event_bridge::{EventBridge, Mood};
use crate::world::{World, texts, told};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

async fn function(bus: &EventBridge) -> Function {
    let variables = [("DUEDAY_EVENT_BUS", "dueday-events"), ("AWS_ENDPOINT_URL_EVENTBRIDGE", bus.url.as_str())];
    Function::start(env!("CARGO_BIN_EXE_events"), "events", &variables).await
}

async fn invoke(function: &mut Function, batch: &Value) -> Answer {
    function.invoke(&batch.to_string(), SystemClock.now().timestamp_millis() + 60_000).await
}

#[tokio::test(flavor = "multi_thread")]
async fn function_publishes_what_the_engines_stream_tells() {
    let (world, bus) = (World::quarter().await, EventBridge::start(|_| Mood::Takes).await);
    let (mut function, batch) = (function(&bus).await, world.batch());
    assert_eq!(invoke(&mut function, &batch).await, Answer::Response(json!({ "batchItemFailures": [] })));

    let taken = bus.taken();
    assert_eq!(texts(&taken, "id"), told(&batch));
    let types = texts(&taken, "type");
    let count = |name: &str| types.iter().filter(|told| *told == name).count();
    assert_eq!((count("account.created"), count("subscription.created")), (1, 2));
    assert_eq!((count("payment.succeeded"), count("subscription.reminded")), (3, 4), "{types:?}");
    assert_eq!((count("payment.declined"), count("subscription.unpaid")), (5, 1), "{types:?}");
    for event in &taken {
        assert_eq!(event["source"], "arn:aws:dynamodb:dynoxide:000000000000:table/dueday");
        let schema = root().join(format!("docs/events/{}.json", event["type"].as_str().unwrap()));
        let schema = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
        let wrong: Vec<_> =
            jsonschema::validator_for(&schema).unwrap().iter_errors(event).map(|e| e.to_string()).collect();
        assert!(wrong.is_empty(), "{wrong:?} {event:#}");
    }
    let least = taken.len().div_ceil(10);
    assert_eq!(bus.requests(), least, "as few requests as entries allow");
}

#[tokio::test(flavor = "multi_thread")]
async fn function_takes_the_sample_event_and_refuses_what_is_no_batch() {
    let bus = EventBridge::start(|_| Mood::Takes).await;
    let mut function = function(&bus).await;
    let sample = std::fs::read_to_string(root().join("events/dynamodb-stream.json")).unwrap();
    let answer = invoke(&mut function, &serde_json::from_str(&sample).unwrap()).await;
    assert_eq!(answer, Answer::Response(json!({ "batchItemFailures": [] })));
    assert_eq!(texts(&bus.taken(), "type"), ["subscription.created", "payment.succeeded"]);

    for no_batch in [json!({}), json!({ "Records": [{ "dynamodb": {} }] })] {
        let Answer::Error(error) = invoke(&mut function, &no_batch).await else { panic!("{no_batch}") };
        assert_eq!(error["errorType"], "Batch", "{error}");
    }
    assert_eq!(bus.taken().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn function_names_the_first_record_that_was_not_published() {
    let world = World::quarter().await;
    // The third entry is refused each time, and as the only one left of its request it is the first.
    let bus = EventBridge::start(|request| if request == 0 { Mood::Refuses(2) } else { Mood::Refuses(0) }).await;
    let (mut function, mut batch) = (function(&bus).await, world.batch());
    batch["Records"].as_array_mut().unwrap().truncate(3);
    let third = batch["Records"][2]["dynamodb"]["SequenceNumber"].clone();
    let answer = invoke(&mut function, &batch).await;
    assert_eq!(answer, Answer::Response(json!({ "batchItemFailures": [{ "itemIdentifier": third }] })));
    assert_eq!((texts(&bus.taken(), "id").as_slice(), bus.requests()), (&told(&batch)[..2], 5));
}
