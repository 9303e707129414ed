//! Tests of the function with a stand-in for SQS and the embedded engine: events become deliveries, deliveries are sent
//! to endpoints, and failed deliveries wait in a list until a schedule sends them to the queue again.

mod crash;
mod encrypted_secrets;
mod isolation;
mod servers;
mod world;

use std::sync::Arc;

use billing::{DeliveryKey, DeliveryStatus, WebhookEndpoint};
use chrono::{TimeDelta, Utc};
use clock::{Clock, SystemClock};
use outbound::{EndpointSecrets, sign_webhook};
use serde_json::json;
use testkit::{ENCRYPTION_KEY, InvocationResult, LambdaFunction, encryption_keys, start_secrets_manager};

use servers::{start_merchant_server, start_sqs};
use world::{Message, World, event, secret};

#[tokio::test(flavor = "multi_thread")]
async fn event_is_delivered_once_to_each_endpoint_that_subscribed_to_its_type() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let all_types = world.create_endpoint(1, &format!("{merchant}/200"), &[]).await;
    let only_succeeded = world.create_endpoint(2, &format!("{merchant}/204"), &["payment.succeeded"]).await;
    let (created, succeeded) = (event("e1", "account.created"), event("e2", "payment.succeeded"));
    assert_eq!(world.handle(&[created.clone(), succeeded.clone()]).await, Vec::<usize>::new());
    let sent = world.take_sent();
    let key = |endpoint: &WebhookEndpoint, event: &str| DeliveryKey { endpoint: endpoint.id, event: event.to_owned() };
    let keys: Vec<DeliveryKey> = sent.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    assert_eq!(keys, [key(&all_types, "e1"), key(&all_types, "e2"), key(&only_succeeded, "e2")]);

    assert_eq!(world.handle(&sent).await, Vec::<usize>::new());
    let delivered = std::mem::take(&mut *received.lock().unwrap());
    let mut requests: Vec<_> = delivered.iter().map(|(sign, body)| (body["id"].as_str().unwrap(), sign)).collect();
    requests.sort_unstable();
    let at = world.clock.now().timestamp();
    let signature = |number, id, body| sign_webhook(&secret(number), id, at, body);
    let (e1, e2) = (signature(1, "e1", &created), signature(1, "e2", &succeeded));
    let own = signature(2, "e2", &succeeded);
    let mut expected = [("e1", &e1), ("e2", &e2), ("e2", &own)];
    expected.sort_unstable();
    assert_eq!(requests, expected, "each endpoint has its own secret");

    // The bus delivers the event to the queue again, and the queue repeats the messages of the finished deliveries.
    // These messages cause no request to an endpoint.
    assert_eq!(world.handle(&[&[created][..], &sent].concat()).await, Vec::<usize>::new());
    assert!(received.lock().unwrap().is_empty() && world.take_sent().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_delivery_is_retried_with_growing_delays_and_then_disables_its_endpoint() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let broken = world.create_endpoint(1, &format!("{merchant}/500"), &[]).await;
    world.handle(&[event("e1", "account.created"), event("e2", "account.created")]).await;
    let sent = world.take_sent();
    let (mut queue, mut gaps, mut last) = (vec![Message::first(sent[0].clone())], Vec::new(), world.clock.now());
    loop {
        let tries = received.lock().unwrap().len();
        let has_more = world.process_queue(&mut queue).await;
        if received.lock().unwrap().len() > tries {
            gaps.push((world.clock.now() - last).num_seconds());
            last = world.clock.now();
        }
        if !has_more {
            break;
        }
    }
    // The first retry is due after 5 seconds, but the schedule starts each minute.
    assert_eq!(gaps, [0, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
    assert_eq!(received.lock().unwrap().len(), 10);
    let stored = world.table.get_webhook_endpoint(broken.id).await.unwrap().unwrap();
    assert_eq!(stored.disabled_because.as_deref(), Some("account.created failed 10 times; the last response was: 500"));

    assert_eq!(world.handle(&sent[1..]).await, Vec::<usize>::new(), "other pending deliveries fail for good");
    let key: DeliveryKey = serde_json::from_str(&sent[1]).unwrap();
    assert_eq!(world.table.get_delivery(&key).await.unwrap().unwrap().status, DeliveryStatus::Failed);
    world.handle(&[event("e3", "account.created")]).await;
    let sent_to_queue = world.take_sent();
    assert_eq!(
        (sent_to_queue, received.lock().unwrap().len()),
        (vec![], 10),
        "no deliveries are created for a disabled endpoint"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_that_accepts_other_events_is_not_disabled_if_it_rejects_one_event() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let endpoint = world.create_endpoint(1, &format!("{merchant}/rejects-e1"), &[]).await;
    let mut queue = vec![Message::first(event("e1", "account.created"))];
    // In each round, the function handles the messages, or the clock advances to the next try of the event e1. After
    // each round, the test adds another event, which the endpoint accepts, until e1 has failed.
    let mut n = 1;
    while world.process_queue(&mut queue).await {
        n += 1;
        if !world.next_tries().is_empty() {
            queue.push(Message::first(event(&format!("e{n}"), "account.created")));
            world.clock.set(world.clock.now() + TimeDelta::minutes(20));
            queue.extend(world.send_due_and_take().await.into_iter().map(Message::first));
        }
    }
    let key = DeliveryKey { endpoint: endpoint.id, event: "e1".to_owned() };
    let failed = world.table.get_delivery(&key).await.unwrap().unwrap();
    assert_eq!((failed.status, failed.attempts), (DeliveryStatus::Failed, 10));
    let stored = world.table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
    assert_eq!(stored.disabled_because, None);
    let writes = stored.version - endpoint.version;
    let accepted = received.lock().unwrap().len() as u64 - 10;
    assert!(writes > 2 && writes < accepted, "the time of the last success is stored once an hour: {writes} writes");
}

#[tokio::test(flavor = "multi_thread")]
async fn redelivery_succeeds_after_the_endpoint_was_fixed_and_fails_after_it_was_removed() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let endpoint = world.create_endpoint(1, &format!("{merchant}/503"), &[]).await;
    world.handle(&[event("e1", "account.created")]).await;
    let sent = world.take_sent();
    assert_eq!(world.handle(&sent).await, Vec::<usize>::new());
    let next_try = world.clock.now() + TimeDelta::seconds(5);
    assert_eq!((world.take_sent(), world.next_tries()), (vec![], vec![next_try]), "the next try");
    let key: DeliveryKey = serde_json::from_str(&sent[0]).unwrap();
    let fix_url = |stored: &WebhookEndpoint| {
        Some(WebhookEndpoint { url: format!("{merchant}/200").parse().unwrap(), ..stored.clone() })
    };
    world.table.change_webhook_endpoint(endpoint.clone(), fix_url).await.unwrap().unwrap();
    assert_eq!(world.handle(&sent).await, Vec::<usize>::new());
    assert_eq!((world.take_sent(), world.next_tries()), (vec![], vec![next_try]), "the next try is not due yet");
    let pending = world.table.get_delivery(&key).await.unwrap().unwrap();
    world.table.change_delivery(pending, |stored| Some(stored.restarted(world.clock.now()))).await.unwrap();
    assert_eq!(world.handle(&sent).await, Vec::<usize>::new());
    assert_eq!(received.lock().unwrap().len(), 2);

    assert!(
        world
            .table
            .delete_webhook_endpoint(endpoint.id, &testkit::sample_action(billing::ActionKind::RemoveEndpoint))
            .await
            .unwrap()
    );
    let delivered = world.table.get_delivery(&key).await.unwrap().unwrap();
    world.table.change_delivery(delivered, |stored| Some(stored.restarted(world.clock.now()))).await.unwrap();
    assert_eq!(world.handle(&sent).await, Vec::<usize>::new());
    let failed = world.table.get_delivery(&key).await.unwrap().unwrap();
    assert_eq!(
        (failed.status, failed.last_response.as_deref()),
        (DeliveryStatus::Failed, Some("the endpoint was removed"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn event_in_an_event_bridge_envelope_is_accepted_and_invalid_messages_stay_in_the_queue() {
    let (world, (merchant, _)) = (World::new().await, start_merchant_server().await);
    world.create_endpoint(1, &format!("{merchant}/200"), &[]).await;
    let in_envelope = format!(r#"{{"detail-type":"account.created","detail":{}}}"#, event("e1", "account.created"));
    let without_type = r#"{"specversion":"1.0"}"#.to_owned();
    assert_eq!(world.handle(&["nonsense".to_owned(), in_envelope, "{}".to_owned(), without_type]).await, [0, 2, 3]);
    assert_eq!(world.take_sent().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn function_processes_the_sample_events_and_sends_nothing_to_a_private_address() {
    let ((queue, sqs_requests), (merchant, received)) = (start_sqs().await, start_merchant_server().await);
    let url = format!("{queue}/queue");
    let secrets = start_secrets_manager(&[("encryption-keys", ENCRYPTION_KEY)]).await;
    let variables = [
        ("DUEDAY_DELIVERY_QUEUE", url.as_str()),
        ("DUEDAY_ENCRYPTION_KEYS_SECRET_NAME", "encryption-keys"),
        ("AWS_ENDPOINT_URL_SQS", queue.as_str()),
        ("AWS_ENDPOINT_URL_SECRETS_MANAGER", secrets.as_str()),
    ];
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_deliver"), "deliver", &variables).await;
    let (id, url) = ("01JZXCVBNM0123456789ABCDEF".parse().unwrap(), merchant.replace("http", "https") + "/200");
    let secret = EndpointSecrets::new(encryption_keys(), Arc::new(SystemClock)).encrypt(id, &secret(1));
    let endpoint = WebhookEndpoint::new(id, url.parse().unwrap(), secret, Utc::now());
    function.table.create_webhook_endpoint(&endpoint, None).await.unwrap();
    let deadline = || SystemClock.now().timestamp_millis() + 60_000;
    for (name, failures) in [("sqs-event", json!([])), ("sqs-delivery", json!([])), ("deliver-due", json!([]))] {
        let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let event = std::fs::read_to_string(path).unwrap();
        let InvocationResult::Response(response) = function.invoke(&event, deadline()).await else { panic!("{name}") };
        assert_eq!(response["batchItemFailures"], failures, "{name}");
    }
    let key = DeliveryKey {
        endpoint: endpoint.id,
        event: "01JNA80W00TQ2XNPH2HZ8S6CKN.2027-01-31.payment.succeeded".to_owned(),
    };
    let delivery = function.table.get_delivery(&key).await.unwrap().unwrap();
    assert_eq!((delivery.attempts, delivery.last_response.as_deref()), (1, Some("the address is not public")));
    let actions: Vec<_> = sqs_requests.lock().unwrap().iter().map(|(action, _)| action.clone()).collect();
    assert_eq!((actions, received.lock().unwrap().len()), (vec!["SendMessageBatch".to_owned()], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn entry_that_is_added_again_while_the_earlier_one_is_removed_stays_in_the_list() {
    let (world, (merchant, _)) = (World::new().await, start_merchant_server().await);
    let endpoint = world.create_endpoint(1, &format!("{merchant}/429"), &[]).await;
    world.handle(&[event("e1", "account.created")]).await;
    let messages = world.take_sent();
    assert_eq!(world.handle(&messages).await, Vec::<usize>::new());
    let next_try = world.next_tries()[0];
    // A run of the schedule has read the entry. Its clock is ahead of the worker's, for which the try is not due yet.
    let due = world.table.get_due_deliveries(endpoint.id, next_try, 1).await.unwrap();
    assert_eq!(world.handle(&messages).await, Vec::<usize>::new());
    world.table.remove_waiting_delivery(&due[0]).await.unwrap();
    assert_eq!(world.next_tries(), [next_try], "the entry of the worker is another one");
    let due = world.table.get_due_deliveries(endpoint.id, next_try, 1).await.unwrap();
    world.table.remove_waiting_delivery(&due[0]).await.unwrap();
    assert!(world.next_tries().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_of_a_table_sends_no_waiting_deliveries_until_it_is_confirmed() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    world.create_endpoint(1, &format!("{merchant}/429"), &[]).await;
    world.handle(&[event("e1", "account.created")]).await;
    world.handle(&world.take_sent()).await;
    world.clock.set(world.next_tries()[0]);
    world.mark_as_copy().await;
    assert_eq!(world.send_due_and_take().await, Vec::<String>::new());
    assert_eq!((world.next_tries().len(), received.lock().unwrap().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_that_is_gone_is_disabled_and_one_that_is_busy_is_tried_when_it_wants() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let gone = world.create_endpoint(1, &format!("{merchant}/410"), &["payment.succeeded"]).await;
    let busy = world.create_endpoint(2, &format!("{merchant}/429"), &["account.created"]).await;
    world.handle(&[event("e1", "payment.succeeded"), event("e2", "account.created")]).await;
    world.handle(&world.take_sent()).await;
    let stored = world.table.get_webhook_endpoint(gone.id).await.unwrap().unwrap();
    assert_eq!(
        stored.disabled_because.as_deref(),
        Some("it responded with the status 410 (Gone): it wants no more events")
    );
    // The merchant's server requests a pause of 20 minutes.
    let next_try = world.clock.now() + TimeDelta::minutes(20);
    let stored = world.table.get_webhook_endpoint(busy.id).await.unwrap().unwrap();
    assert_eq!(
        (stored.disabled_because, stored.backoff.until, world.next_tries()),
        (None, Some(next_try), vec![next_try])
    );
    world.clock.set(next_try - TimeDelta::seconds(1));
    assert_eq!(world.send_due_and_take().await, Vec::<String>::new());
    world.handle(&[event("e3", "account.created")]).await;
    world.handle(&world.take_sent()).await;
    assert_eq!(received.lock().unwrap().len(), 2, "another event waits too");
    world.clock.set(next_try);
    world.handle(&world.send_due_and_take().await).await;
    assert_eq!(received.lock().unwrap().len(), 3);
}
