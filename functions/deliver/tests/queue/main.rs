//! The function on a stand-in for SQS and a real engine: events become deliveries, deliveries are tried, and what is to come
//! again stays in the queue.

mod crash;
mod servers;
mod world;

use billing::{DeliveryKey, DeliveryStatus, Secret, WebhookEndpoint};
use chrono::{TimeDelta, Utc};
use clock::{Clock, SystemClock};
use delivery::sign;
use serde_json::json;
use testkit::{Answer, Function};

use servers::{program, sqs};
use world::{World, event};

#[tokio::test(flavor = "multi_thread")]
async fn event_becomes_a_delivery_for_each_endpoint_that_wants_it_once() {
    let (world, (program, got)) = (World::new().await, program().await);
    let all = world.endpoint(1, &format!("{program}/200"), &[]).await;
    let paid = world.endpoint(2, &format!("{program}/204"), &["payment.succeeded"]).await;
    let (created, succeeded) = (event("e1", "account.created"), event("e2", "payment.succeeded"));
    assert_eq!(world.handle(&[created.clone(), succeeded.clone()]).await, Vec::<usize>::new());
    let (sent, _) = world.queued();
    let key = |endpoint: &WebhookEndpoint, event: &str| DeliveryKey { endpoint: endpoint.id, event: event.to_owned() };
    let keys: Vec<DeliveryKey> = sent.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    assert_eq!(keys, [key(&all, "e1"), key(&all, "e2"), key(&paid, "e2")]);

    assert_eq!(world.handle(&sent).await, Vec::<usize>::new());
    let delivered = std::mem::take(&mut *got.lock().unwrap());
    let bodies: Vec<_> = delivered.iter().map(|(_, body)| body["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(bodies, ["e1", "e2", "e2"]);
    let at = world.clock.now().timestamp();
    assert_eq!(delivered[2].0, sign(&paid.secret, "e2", at, &succeeded), "each with its own secret");

    // The bus tells it again, and the queue hands over again what is done.
    assert_eq!(world.handle(&[&[created][..], &sent].concat()).await, Vec::<usize>::new());
    assert!(got.lock().unwrap().is_empty() && world.queued().0.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_that_fails_waits_longer_each_time_and_then_disables_its_endpoint() {
    let (world, (program, got)) = (World::new().await, program().await);
    let broken = world.endpoint(1, &format!("{program}/500"), &[]).await;
    world.handle(&[event("e1", "account.created"), event("e2", "account.created")]).await;
    let (sent, _) = world.queued();
    let mut waited = Vec::new();
    for _ in 0..20 {
        let again = world.handle(&sent[..1]).await;
        let (_, waits) = world.queued();
        let Some(wait) = waits.first() else {
            assert_eq!(again, Vec::<usize>::new());
            break;
        };
        assert_eq!(again, [0]);
        waited.push(*wait);
        world.clock.set(world.clock.now() + TimeDelta::seconds(*wait));
    }
    // 14, 20 and 24 hours are waited in steps.
    assert_eq!(waited, [6, 301, 1_801, 7_201, 18_001, 36_001, 39_600, 10_801, 39_600, 32_401, 39_600, 39_600, 7_201]);
    assert_eq!(got.lock().unwrap().len(), 10);
    let stored = world.table.get_webhook_endpoint(broken.id).await.unwrap().unwrap();
    assert_eq!(stored.disabled_because.as_deref(), Some("account.created was tried 10 times, and at last: 500"));

    assert_eq!(world.handle(&sent[1..]).await, Vec::<usize>::new(), "what else was on its way is given up");
    let key: DeliveryKey = serde_json::from_str(&sent[1]).unwrap();
    assert_eq!(world.table.get_delivery(&key).await.unwrap().unwrap().status, DeliveryStatus::Failed);
    world.handle(&[event("e3", "account.created")]).await;
    assert_eq!((world.queued().0, got.lock().unwrap().len()), (vec![], 10), "nothing more is made for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_that_takes_others_is_not_disabled_for_one_event_that_it_refuses() {
    let (world, (program, got)) = (World::new().await, program().await);
    let endpoint = world.endpoint(1, &format!("{program}/refuses-e1"), &[]).await;
    let mut queue = vec![event("e1", "account.created")];
    // Another event each time that the first one is tried, or waits again.
    for n in 2..40 {
        queue.push(event(&format!("e{n}"), "account.created"));
        world.work_on(&mut queue).await;
    }
    let key = DeliveryKey { endpoint: endpoint.id, event: "e1".to_owned() };
    let given_up = world.table.get_delivery(&key).await.unwrap().unwrap();
    assert_eq!((given_up.status, given_up.attempts), (DeliveryStatus::Failed, 10));
    let stored = world.table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
    assert_eq!(stored.disabled_because, None);
    let notes = stored.version - endpoint.version;
    assert!(notes > 2 && notes < got.lock().unwrap().len() as u64 - 10, "noted once an hour: {notes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_comes_again_while_an_endpoint_cannot_be_read_and_the_others_have_it_once() {
    let (world, (program, got)) = (World::new().await, program().await);
    world.endpoint(1, &format!("{program}/200"), &[]).await;
    let spoilt = world.spoilt_endpoint(2).await;
    let told = event("e1", "account.created");
    assert_eq!(world.handle(std::slice::from_ref(&told)).await, [0], "until it is among the lost ones");
    let (sent, _) = world.queued();
    assert_eq!(world.handle(&sent).await, Vec::<usize>::new());
    assert_eq!(world.handle(std::slice::from_ref(&told)).await, [0]);
    assert_eq!((world.queued().0, got.lock().unwrap().len()), (vec![], 1));
    world.table.delete_webhook_endpoint(spoilt).await.unwrap();
    world.endpoint(2, &format!("{program}/204"), &[]).await;
    assert_eq!(world.handle(&[told]).await, Vec::<usize>::new(), "it is mended");
    assert_eq!(world.queued().0.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_is_tried_again_after_it_was_mended_and_asked_for() {
    let (world, (program, got)) = (World::new().await, program().await);
    let endpoint = world.endpoint(1, &format!("{program}/503"), &[]).await;
    world.handle(&[event("e1", "account.created")]).await;
    let (sent, _) = world.queued();
    assert_eq!(world.handle(&sent).await, [0]);
    let key: DeliveryKey = serde_json::from_str(&sent[0]).unwrap();
    let mended = |stored: &WebhookEndpoint| {
        Some(WebhookEndpoint { url: format!("{program}/200").parse().unwrap(), ..stored.clone() })
    };
    world.table.change_webhook_endpoint(endpoint.clone(), mended).await.unwrap().unwrap();
    assert_eq!(world.handle(&sent).await, [0], "not before its time");
    let pending = world.table.get_delivery(&key).await.unwrap().unwrap();
    world.table.change_delivery(pending, |stored| Some(stored.again(world.clock.now()))).await.unwrap();
    assert_eq!(world.handle(&sent).await, Vec::<usize>::new());
    assert_eq!(got.lock().unwrap().len(), 2);

    assert!(world.table.delete_webhook_endpoint(endpoint.id).await.unwrap());
    let done = world.table.get_delivery(&key).await.unwrap().unwrap();
    world.table.change_delivery(done, |stored| Some(stored.again(world.clock.now()))).await.unwrap();
    assert_eq!(world.handle(&sent).await, Vec::<usize>::new());
    let given_up = world.table.get_delivery(&key).await.unwrap().unwrap();
    assert_eq!(
        (given_up.status, given_up.last_answer.as_deref()),
        (DeliveryStatus::Failed, Some("the endpoint was removed"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn message_in_the_envelope_of_the_bus_is_understood_and_nonsense_comes_again() {
    let (world, (program, _)) = (World::new().await, program().await);
    world.endpoint(1, &format!("{program}/200"), &[]).await;
    let of_the_bus = format!(r#"{{"detail-type":"account.created","detail":{}}}"#, event("e1", "account.created"));
    let nameless = r#"{"specversion":"1.0"}"#.to_owned();
    assert_eq!(world.handle(&["nonsense".to_owned(), of_the_bus, "{}".to_owned(), nameless]).await, [0, 2, 3]);
    assert_eq!(world.queued().0.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn function_delivers_the_sample_events_and_reaches_no_address_inside() {
    let ((queue, asked), (program, got)) = (sqs().await, program().await);
    let url = format!("{queue}/queue");
    let variables = [("DUEDAY_DELIVERY_QUEUE", url.as_str()), ("AWS_ENDPOINT_URL_SQS", queue.as_str())];
    let mut function = Function::start(env!("CARGO_BIN_EXE_deliver"), "deliver", &variables).await;
    let (id, url) = ("01JZXCVBNM0123456789ABCDEF".parse().unwrap(), program.replace("http", "https") + "/200");
    let endpoint = WebhookEndpoint::new(id, url.parse().unwrap(), Secret::new([1; 32]), Utc::now());
    function.table.create_webhook_endpoint(&endpoint).await.unwrap();
    let deadline = || SystemClock.now().timestamp_millis() + 60_000;
    for (name, again) in [
        ("sqs-event", json!([])),
        ("sqs-delivery", json!([{ "itemIdentifier": "059f36b4-87a3-44ab-83d2-661975830a7d" }])),
    ] {
        let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let event = std::fs::read_to_string(path).unwrap();
        let Answer::Response(answer) = function.invoke(&event, deadline()).await else { panic!("{name}") };
        assert_eq!(answer["batchItemFailures"], again, "{name}");
    }
    let key = DeliveryKey {
        endpoint: endpoint.id,
        event: "01JNA80W00TQ2XNPH2HZ8S6CKN.2027-01-31.payment.succeeded".to_owned(),
    };
    let delivery = function.table.get_delivery(&key).await.unwrap().unwrap();
    assert_eq!((delivery.attempts, delivery.last_answer.as_deref()), (1, Some("its address is not public")));
    let actions: Vec<_> = asked.lock().unwrap().iter().map(|(action, _)| action.clone()).collect();
    assert_eq!(
        (actions, got.lock().unwrap().len()),
        (vec!["SendMessageBatch".to_owned(), "ChangeMessageVisibility".to_owned()], 0)
    );
}
