//! A bus that refuses, fails and does not answer, and a function that is killed at each of its calls.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::event_bridge::{EventBridge, Mood};
use crate::world::{World, publisher, texts, told};

fn ids(details: &[Value]) -> BTreeSet<String> {
    texts(details, "id").into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_entries_are_put_again_and_no_others() {
    let (world, bus) = (
        World::quarter().await,
        EventBridge::start(|request| if request < 2 { Mood::Refuses(request + 3) } else { Mood::Takes }).await,
    );
    let batch = world.batch();
    let published = publisher(&bus).await.publish(&batch).await.unwrap();
    let told = told(&batch);
    assert_eq!((published.events, published.not_published_from), (told.len(), None));
    assert_eq!(ids(&bus.taken()), told.iter().cloned().collect());
    assert_eq!(bus.taken().len(), told.len(), "each once");
    assert_eq!(bus.requests(), told.len().div_ceil(10) + 1, "the refused ones make one more request");
}

#[tokio::test(flavor = "multi_thread")]
async fn request_that_failed_is_made_again() {
    let (world, bus) = (
        World::quarter().await,
        EventBridge::start(|request| if request == 1 { Mood::Fails } else { Mood::Takes }).await,
    );
    let batch = world.batch();
    let published = publisher(&bus).await.publish(&batch).await.unwrap();
    assert_eq!(published.not_published_from, None);
    assert_eq!(texts(&bus.taken(), "id"), told(&batch), "in their order: the SDK made it again");
}

#[tokio::test(flavor = "multi_thread")]
async fn function_that_is_killed_at_any_call_loses_nothing_and_renames_nothing() {
    let world = World::quarter().await;
    let batch = world.batch();
    let told: BTreeSet<String> = told(&batch).into_iter().collect();
    for hangs in [Mood::HangsBefore, Mood::HangsAfter] {
        for killed_at in 0..told.len().div_ceil(10) {
            let bus = EventBridge::start(move |request| if request == killed_at { hangs } else { Mood::Takes }).await;
            let publisher = publisher(&bus).await;
            tokio::select! {
                published = publisher.publish(&batch) => panic!("{published:?} although call {killed_at} hangs"),
                () = bus.hangs() => {}
            }
            // Lambda hands over the same batch again.
            assert_eq!(publisher.publish(&batch).await.unwrap().not_published_from, None);
            let taken = bus.taken();
            assert_eq!(ids(&taken), told, "killed at {killed_at}, {hangs:?}");
            let mut by_id = BTreeMap::new();
            for event in &taken {
                let first = by_id.entry(event["id"].as_str().unwrap()).or_insert(event);
                assert_eq!(*first, event, "the same id is the same event");
            }
        }
    }
}
