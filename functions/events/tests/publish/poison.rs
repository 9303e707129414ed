//! Tests of poison records: stream records that cannot be read.

use serde_json::{Value, json};
use testkit::event_schema_errors;

use crate::event_bridge::{FakeBusBehavior, FakeEventBridge};
use crate::world::{batch_of_three_months, expected_event_ids, publisher, texts};

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_record_is_published_with_its_key_and_does_not_block_others() {
    let valid_batch = batch_of_three_months().await;
    let is_subscription = |record: &Value| record["dynamodb"]["Keys"]["SK"]["S"].as_str().unwrap().starts_with("SUB#");
    let poisoned = valid_batch["Records"].as_array().unwrap().iter().position(is_subscription).unwrap();
    let key = valid_batch["Records"][poisoned]["dynamodb"]["Keys"].clone();
    let poison = |change: &dyn Fn(&mut Value)| {
        let mut batch = valid_batch.clone();
        change(&mut batch["Records"][poisoned]);
        batch
    };
    for (batch, expected_reason) in [
        (
            poison(&|record| record["dynamodb"]["NewImage"]["DueDate"] = json!({ "S": "someone@example.com" })),
            "its attribute DueDate must be a valid date",
        ),
        (
            poison(&|record| record["dynamodb"]["NewImage"] = json!({ "Email": "someone@example.com" })),
            "not a DynamoDB stream record",
        ),
        (poison(&|record| record["dynamodb"]["NewImage"]["SK"] = json!({ "S": "XYZ#1" })), "unknown prefix"),
        (
            poison(&|record| drop(record["dynamodb"].as_object_mut().unwrap().remove("ApproximateCreationDateTime"))),
            "it has no ApproximateCreationDateTime",
        ),
    ] {
        let bus = FakeEventBridge::start(|_| FakeBusBehavior::Accepts).await;
        let published = publisher(&bus).await.publish(&batch).await.unwrap();
        assert_eq!((published.unreadable, published.first_unpublished), (1, None), "{expected_reason}");
        let accepted = bus.accepted();
        let (unreadable, others): (Vec<Value>, Vec<Value>) =
            accepted.into_iter().partition(|event| event["type"] == "record.unreadable");
        assert_eq!(unreadable[0]["data"]["pk"], key["PK"]["S"]);
        assert!(unreadable[0]["data"]["reason"].as_str().unwrap().contains(expected_reason), "{unreadable:?}");
        assert!(!unreadable[0].to_string().contains('@'), "{unreadable:?}");
        let errors = event_schema_errors(&unreadable[0]);
        assert!(errors.is_empty(), "{errors:?} {:#}", unreadable[0]);
        let mut other_records = valid_batch.clone();
        other_records["Records"].as_array_mut().unwrap().remove(poisoned);
        assert_eq!(texts(&others, "id"), expected_event_ids(&other_records), "{expected_reason}: all other events");
    }
}
