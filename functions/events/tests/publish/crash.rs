//! Tests with a bus that rejects entries, fails or does not respond, and with a function that is killed at each of its
//! requests to the bus.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::event_bridge::{FakeBusBehavior, FakeEventBridge};
use crate::world::{batch_of_three_months, expected_event_ids, publisher, texts};

/// Returns the ids of the events `details`, without duplicates.
fn ids(details: &[Value]) -> BTreeSet<String> {
    texts(details, "id").into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_rejected_event_bridge_entries_are_sent_again() {
    let bus = FakeEventBridge::start(|request| {
        if request < 2 { FakeBusBehavior::RejectsEntry(request + 3) } else { FakeBusBehavior::Accepts }
    })
    .await;
    let batch = batch_of_three_months().await;
    let published = publisher(&bus).await.publish(&batch).await.unwrap();
    let expected = expected_event_ids(&batch);
    assert_eq!((published.events, published.first_unpublished), (expected.len(), None));
    assert_eq!(ids(&bus.accepted()), expected.iter().cloned().collect());
    assert_eq!(bus.accepted().len(), expected.len(), "each event is accepted once");
    assert_eq!(bus.requests(), expected.len().div_ceil(10) + 1, "one more request for the rejected entries");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_put_events_request_is_retried() {
    let bus =
        FakeEventBridge::start(|request| if request == 1 { FakeBusBehavior::Fails } else { FakeBusBehavior::Accepts })
            .await;
    let batch = batch_of_three_months().await;
    let published = publisher(&bus).await.publish(&batch).await.unwrap();
    assert_eq!(published.first_unpublished, None);
    assert_eq!(texts(&bus.accepted(), "id"), expected_event_ids(&batch), "the SDK's retry keeps the order");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_is_lost_and_ids_stay_the_same_if_the_function_is_killed_at_any_call() {
    let batch = batch_of_three_months().await;
    let expected: BTreeSet<String> = expected_event_ids(&batch).into_iter().collect();
    for hangs in [FakeBusBehavior::HangsBefore, FakeBusBehavior::HangsAfter] {
        for killed_at in 0..expected.len().div_ceil(10) {
            let behavior = move |request: usize| if request == killed_at { hangs } else { FakeBusBehavior::Accepts };
            let bus = FakeEventBridge::start(behavior).await;
            let publisher = publisher(&bus).await;
            tokio::select! {
                published = publisher.publish(&batch) => panic!("{published:?} although call {killed_at} hangs"),
                () = bus.wait_until_request_hangs() => {}
            }
            // Publish the same batch again, as Lambda does after a killed invocation.
            assert_eq!(publisher.publish(&batch).await.unwrap().first_unpublished, None);
            let accepted = bus.accepted();
            assert_eq!(ids(&accepted), expected, "killed at {killed_at}, {hangs:?}");
            let mut by_id = BTreeMap::new();
            for event in &accepted {
                let first = by_id.entry(event["id"].as_str().unwrap()).or_insert(event);
                assert_eq!(*first, event, "events with the same id are equal");
            }
        }
    }
}
