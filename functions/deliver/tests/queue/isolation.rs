//! Tests that a slow or failing endpoint does not delay the deliveries to other endpoints, and that an endpoint to
//! which all deliveries fail is in back-off.

use billing::{DeliveryKey, DeliveryStatus, MAX_DELIVERY_AGE, WebhookEndpoint};
use chrono::TimeDelta;
use clock::Clock as _;

use crate::servers::start_merchant_server;
use crate::world::{World, event};

/// Returns one event of the type `account.created` for each of `numbers`. The id of the event for the number 3 is `e3`.
fn events(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|n| event(&format!("e{n}"), "account.created")).collect()
}

/// Returns the key of the delivery of the event `event` to `endpoint`.
fn key(endpoint: &WebhookEndpoint, event: &str) -> DeliveryKey {
    DeliveryKey { endpoint: endpoint.id, event: event.to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_endpoint_gets_four_requests_at_a_time_and_delays_no_other_endpoint() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let hanging = world.create_endpoint(1, &format!("{merchant}/hangs"), &[]).await;
    world.handle(&events(0..6)).await;
    world.create_endpoint(2, &format!("{merchant}/200"), &[]).await;
    world.handle(&events(6..8)).await;
    let sent = world.take_sent();
    let is_hanging = |body: &&String| body.contains(&hanging.id.to_string());
    let (hanging_first, healthy): (Vec<_>, Vec<_>) = sent.iter().partition(is_hanging);
    let batch: Vec<String> = hanging_first.into_iter().take(6).chain(healthy).cloned().collect();
    let processed = {
        let handle = world.handle(&batch);
        tokio::pin!(handle);
        let all_arrived = async {
            while received.lock().unwrap().len() < 6 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = &mut handle => panic!("four requests have no response"),
            () = all_arrived => {}
        }
        // Four of the six deliveries to the hanging endpoint are in progress, and two wait. The healthy endpoint has
        // received both of its events.
        let ids: Vec<_> =
            received.lock().unwrap().iter().map(|(_, body)| body["id"].as_str().unwrap().to_owned()).collect();
        assert!(ids.contains(&"e6".to_owned()) && ids.contains(&"e7".to_owned()), "{ids:?}");
        ids.len()
    };
    assert_eq!(processed, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_that_fails_three_times_is_paused_then_probed_with_one_request_and_resumed_by_a_success() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let endpoint = world.create_endpoint(1, &format!("{merchant}/503"), &[]).await;
    world.handle(&events(0..3)).await;
    world.handle(&world.take_sent()).await;
    assert_eq!(received.lock().unwrap().len(), 3);

    world.handle(&events(3..8)).await;
    assert_eq!(world.handle(&world.take_sent()).await, Vec::<usize>::new());
    assert_eq!((world.next_tries().len(), received.lock().unwrap().len()), (8, 3), "no request");
    let untried = world.table.get_delivery(&key(&endpoint, "e3")).await.unwrap().unwrap();
    assert_eq!((untried.attempts, untried.version), (0, 1), "the postponement is not a try");

    world.clock.set(world.clock.now() + TimeDelta::minutes(1));
    let probe = world.send_due_and_take().await;
    assert_eq!((probe.len(), world.next_tries().len()), (1, 7), "only the probe");
    world.handle(&probe).await;
    assert_eq!((received.lock().unwrap().len(), world.next_tries().len()), (4, 8));
    let stored = world.table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
    assert_eq!(stored.backoff.failures, 4);
    assert_eq!(stored.backoff.until, Some(world.clock.now() + TimeDelta::seconds(10)));
    assert_eq!(world.send_due_and_take().await, Vec::<String>::new(), "the endpoint is in back-off");

    let repaired = |stored: &WebhookEndpoint| {
        Some(WebhookEndpoint { url: format!("{merchant}/200").parse().unwrap(), ..stored.clone() })
    };
    world.table.change_webhook_endpoint(stored, repaired).await.unwrap();
    world.clock.set(world.clock.now() + TimeDelta::minutes(6));
    let probe = world.send_due_and_take().await;
    assert_eq!(world.handle(&probe).await, Vec::<usize>::new());
    assert_eq!((probe.len(), received.lock().unwrap().len()), (1, 5), "the probe succeeds");
    let others = world.send_due_and_take().await;
    assert_eq!(world.handle(&others).await, Vec::<usize>::new());
    assert_eq!(
        (others.len(), received.lock().unwrap().len(), world.next_tries()),
        (7, 12, vec![]),
        "all others follow"
    );
    let stored = world.table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
    assert_eq!((stored.backoff.failures, stored.backoff.until), (0, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_that_fails_does_not_stop_the_waiting_deliveries_of_other_endpoints() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    world.create_endpoint(1, &format!("{merchant}/503"), &["account.created"]).await;
    let quick = world.create_endpoint(2, &format!("{merchant}/503"), &["payment.succeeded"]).await;
    let mut queue = events(0..3);
    queue.extend((0..250).map(|n| event(&format!("p{n}"), "payment.succeeded")));
    world.handle(&queue).await;
    world.handle(&world.take_sent()).await;
    let repaired = |stored: &WebhookEndpoint| {
        let url = format!("{merchant}/200").parse().unwrap();
        Some(WebhookEndpoint { url, backoff: billing::EndpointBackoff::default(), ..stored.clone() })
    };
    let stored = world.table.get_webhook_endpoint(quick.id).await.unwrap().unwrap();
    world.table.change_webhook_endpoint(stored, repaired).await.unwrap();
    world.clock.set(world.clock.now() + TimeDelta::minutes(1));
    let sent = world.send_due_and_take().await;
    assert_eq!(sent.len(), 1 + 250, "the probe of the broken endpoint, and all deliveries of the other one");
    let before = received.lock().unwrap().len();
    world.handle(&sent).await;
    assert_eq!((received.lock().unwrap().len() - before, world.next_tries().len()), (251, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_item_is_written_only_when_its_state_changes() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let endpoint = world.create_endpoint(1, &format!("{merchant}/200"), &[]).await;
    for batch in [0..10, 10..20] {
        world.handle(&events(batch)).await;
        let sent = world.take_sent();
        world.handle(&sent).await;
    }
    let stored = world.table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
    assert_eq!((received.lock().unwrap().len(), stored.version), (20, 2), "one write for the first success");
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_older_than_four_days_is_failed_instead_of_postponed_and_its_dead_endpoint_is_disabled() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let endpoint = world.create_endpoint(1, &format!("{merchant}/503"), &[]).await;
    world.handle(&events(0..4)).await;
    let sent = world.take_sent();
    world.handle(&sent[..3]).await;
    // The endpoint is in back-off until the fourth delivery is too old. This delivery was never tried.
    let end = world.clock.now() + MAX_DELIVERY_AGE;
    let backoff = |stored: &WebhookEndpoint| {
        let mut stored = stored.clone();
        stored.backoff.until = Some(end + TimeDelta::minutes(10));
        Some(stored)
    };
    world.table.change_webhook_endpoint(endpoint.clone(), backoff).await.unwrap();
    world.clock.set(end);
    world.handle(&sent[3..]).await;
    let later = end + TimeDelta::minutes(10);
    assert_eq!((world.take_sent(), world.next_tries().last()), (vec![], Some(&later)), "four days old");
    world.clock.set(later - TimeDelta::seconds(1));
    // A message of an earlier version contains an instant before which the delivery must wait.
    let mut old_message: serde_json::Value = serde_json::from_str(&sent[3]).unwrap();
    old_message["not_before"] = later.to_string().into();
    assert_eq!(world.handle(&[old_message.to_string()]).await, Vec::<usize>::new());
    assert_eq!((world.take_sent(), received.lock().unwrap().len()), (vec![], 3));
    let failed = world.table.get_delivery(&key(&endpoint, "e3")).await.unwrap().unwrap();
    let because = "account.created was not accepted within four days; the last response was: none, because other \
        deliveries failed";
    assert_eq!((failed.status, failed.last_response.as_deref()), (DeliveryStatus::Failed, Some(because)));
    let stored = world.table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
    assert_eq!(stored.disabled_because.as_deref(), Some(because));
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_endpoint_keeps_only_its_own_deliveries_waiting_until_it_is_repaired() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    world.create_endpoint(1, &format!("{merchant}/200"), &[]).await;
    let unreadable = world.create_unreadable_endpoint(2).await;
    let created = event("e1", "account.created");
    assert_eq!(world.handle(&[created]).await, Vec::<usize>::new(), "the event is processed");
    let sent = world.take_sent();
    assert_eq!((sent.len(), world.handle(&sent).await), (2, vec![]));
    let in_an_hour = world.clock.now() + TimeDelta::hours(1);
    let waiting = (world.take_sent(), world.next_tries(), received.lock().unwrap().len());
    assert_eq!(waiting, (vec![], vec![in_an_hour], 1), "only the unreadable endpoint waits");

    world
        .table
        .delete_webhook_endpoint(unreadable, &testkit::sample_action(billing::ActionKind::RemoveEndpoint))
        .await
        .unwrap();
    let repaired = world.create_endpoint(2, &format!("{merchant}/204"), &[]).await;
    world.clock.set(in_an_hour);
    assert_eq!(world.handle(&world.send_due_and_take().await).await, Vec::<usize>::new());
    assert_eq!((world.next_tries(), received.lock().unwrap().len()), (vec![], 2));
    let delivered = world.table.get_delivery(&key(&repaired, "e1")).await.unwrap().unwrap();
    assert_eq!(delivered.status, DeliveryStatus::Delivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_delivery_delays_no_other_delivery_of_its_batch() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let endpoint = world.create_endpoint(1, &format!("{merchant}/200"), &[]).await;
    world.handle(&events(0..1)).await;
    let corrupt = world.take_sent();
    world.corrupt_delivery(&key(&endpoint, "e0"), "Status");
    // The bus publishes the event again, together with another event.
    assert_eq!(world.handle(&events(0..2)).await, Vec::<usize>::new());
    let sent = world.take_sent();
    assert_eq!(sent.len(), 1, "only the readable delivery is queued");
    assert_eq!(world.handle(&[corrupt, sent].concat()).await, [0], "the message of the corrupt delivery stays");
    assert_eq!(received.lock().unwrap().len(), 1);
}
