//! Records that cannot be read.

use serde_json::{Value, json};

use crate::event_bridge::{EventBridge, Mood};
use crate::world::{World, publisher, texts, told};

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events/record.unreadable.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn record_that_cannot_be_read_is_set_aside_with_its_key_and_stops_no_other() {
    let world = World::quarter().await;
    let whole = world.batch();
    let position =
        |subscription: &Value| subscription["dynamodb"]["Keys"]["SK"]["S"].as_str().unwrap().starts_with("SUB#");
    let poisoned = whole["Records"].as_array().unwrap().iter().position(position).unwrap();
    let key = whole["Records"][poisoned]["dynamodb"]["Keys"].clone();
    let spoil = |change: &dyn Fn(&mut Value)| {
        let mut batch = whole.clone();
        change(&mut batch["Records"][poisoned]);
        batch
    };
    for (batch, said) in [
        (
            spoil(&|record| record["dynamodb"]["NewImage"]["DueDate"] = json!({ "S": "someone@example.com" })),
            "its attribute DueDate must be a day",
        ),
        (
            spoil(&|record| record["dynamodb"]["NewImage"] = json!({ "Email": "someone@example.com" })),
            "no record of a stream",
        ),
        (spoil(&|record| record["dynamodb"]["NewImage"]["SK"] = json!({ "S": "XYZ#1" })), "not what it is"),
    ] {
        let bus = EventBridge::start(|_| Mood::Takes).await;
        let published = publisher(&bus).await.publish(&batch).await.unwrap();
        assert_eq!((published.unreadable, published.not_published_from), (1, None), "{said}");
        let taken = bus.taken();
        let (aside, others): (Vec<Value>, Vec<Value>) =
            taken.into_iter().partition(|event| event["type"] == "record.unreadable");
        assert_eq!(aside[0]["data"]["pk"], key["PK"]["S"]);
        assert!(aside[0]["data"]["reason"].as_str().unwrap().contains(said), "{aside:?}");
        assert!(!aside[0].to_string().contains('@'), "{aside:?}");
        let wrong: Vec<_> =
            jsonschema::validator_for(&schema()).unwrap().iter_errors(&aside[0]).map(|e| e.to_string()).collect();
        assert!(wrong.is_empty(), "{wrong:?} {:#}", aside[0]);
        let mut rest = whole.clone();
        rest["Records"].as_array_mut().unwrap().remove(poisoned);
        assert_eq!(texts(&others, "id"), told(&rest), "{said}: all others");
    }
}
