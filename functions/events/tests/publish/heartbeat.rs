//! Tests of the heartbeat: a schedule writes an item, and its event on the bus shows that the stream of the table is
//! published.

use aws_sdk_dynamodb::types::AttributeValue;
use emulator::Engine;
use serde_json::Value;
use store::Table;
use testkit::event_schema_errors;

use crate::event_bridge::{FakeBusBehavior, FakeEventBridge};
use crate::world::{TABLE, publisher, texts};

/// Returns the properties of the resource `name` in `template.yaml`.
fn resource(name: &str) -> serde_yaml_ng::Value {
    let template: serde_yaml_ng::Value = serde_yaml_ng::from_str(include_str!("../../../../template.yaml")).unwrap();
    template["Resources"][name]["Properties"].clone()
}

/// Returns the input that EventBridge Scheduler passes to DynamoDB's PutItem at `time`.
fn scheduled_input(time: &str) -> Value {
    let schedule = resource("HeartbeatSchedule");
    let serde_yaml_ng::Value::Tagged(input) = &schedule["Target"]["Input"] else { panic!("no !Sub: {schedule:?}") };
    let input = input.value.as_str().unwrap().replace("${Table}", TABLE);
    serde_json::from_str(&input.replace("<aws.scheduler.scheduled-time>", time)).unwrap()
}

/// Returns whether the filter of the stream in the template passes a record with the partition key `pk`.
fn is_passed_by_stream_filter(pk: &str) -> bool {
    let filter = resource("EventsFunction")["Events"]["Stream"]["Properties"]["FilterCriteria"]["Filters"][0].clone();
    let pattern: Value = serde_json::from_str(filter["Pattern"].as_str().unwrap()).unwrap();
    let alternatives = pattern["dynamodb"]["Keys"]["PK"]["S"].as_array().unwrap();
    alternatives.iter().any(|one| *one == *pk || one["prefix"].as_str().is_some_and(|prefix| pk.starts_with(prefix)))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scheduled_write_of_the_heartbeat_becomes_an_event_for_operators() {
    let (engine, bus) = (Engine::in_memory(), FakeEventBridge::start(|_| FakeBusBehavior::Accepts).await);
    let table = Table::new(engine.client(), TABLE);
    table.create_if_absent().await.unwrap();
    let stream = engine.stream(TABLE).unwrap();
    let times = ["2026-11-25T08:00:00Z", "2026-11-25T08:15:00Z"];
    // DynamoDB's stream contains no record for an item that is replaced by an equal one.
    assert_ne!(scheduled_input(times[0]), scheduled_input(times[1]));
    for time in times {
        let Value::Object(item) = scheduled_input(time)["Item"].clone() else { panic!("no item") };
        let item = item.into_iter().map(|(name, value)| (name, AttributeValue::S(value["S"].as_str().unwrap().into())));
        let put = table.client().put_item().table_name(TABLE).set_item(Some(item.collect()));
        put.send().await.unwrap();
    }
    let batch = stream.records_after(None, 10).unwrap();
    let keys: Vec<&str> = batch["Records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["dynamodb"]["Keys"]["PK"]["S"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["CTL#heartbeat"; 2]);
    assert!(
        keys.iter().all(|pk| is_passed_by_stream_filter(pk))
            && is_passed_by_stream_filter("ACC#acme")
            && !is_passed_by_stream_filter("CTL#settings")
    );
    assert!(
        is_passed_by_stream_filter("AUDITS") && is_passed_by_stream_filter("RECONCILED"),
        "these items become events"
    );

    let published = publisher(&bus).await.publish(&batch).await.unwrap();
    assert_eq!((published.events, published.unreadable), (2, 0));
    let rule = resource("HeartbeatsRule");
    let source = rule["EventPattern"]["source"][0].as_str().unwrap();
    assert_eq!(texts(&bus.accepted_entries(), "Source"), [source; 2]);
    for event in bus.accepted() {
        let errors = event_schema_errors(&event);
        assert!(errors.is_empty(), "{errors:?} {event:#}");
    }
    let ids = texts(&bus.accepted(), "id");
    assert_ne!(ids[0], ids[1], "two heartbeats are two events");
}
