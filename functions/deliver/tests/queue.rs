//! The function on a stand-in for SQS and a real engine: events become deliveries, deliveries are tried, and what is to come
//! again stays in the queue.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use chrono::{TimeDelta, Utc};
use deliver::Deliveries;
use emulator::{Answer, Engine, Function};
use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, json};
use shared::clock::{Clock, SimulatedClock, SystemClock};
use shared::config::Env;
use shared::table::Table;
use shared::webhooks::{DeliveryKey, DeliveryStatus, Reach, Secret, Sender, WebhookEndpoint};
use ulid::Ulid;

/// What a server was asked, by what it was asked to do.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

async fn listen(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

/// A stand-in for SQS that takes what it is sent ("SendMessageBatch", "ChangeMessageVisibility" in its API reference).
async fn sqs() -> (String, Asked) {
    async fn answer(State(asked): State<Asked>, headers: HeaderMap, body: Bytes) -> String {
        let request: Value = serde_json::from_slice(&body).unwrap();
        let action = headers["x-amz-target"].to_str().unwrap().trim_start_matches("AmazonSQS.").to_owned();
        let entries = request["Entries"].as_array().cloned().unwrap_or_default();
        assert!(entries.len() <= 10, "too many entries");
        let sent = entries.iter().map(|entry| {
            let digest = "d41d8cd98f00b204e9800998ecf8427e";
            json!({ "Id": entry["Id"], "MessageId": "1", "MD5OfMessageBody": digest })
        });
        let answer = json!({ "Successful": sent.collect::<Vec<_>>(), "Failed": [] }).to_string();
        asked.lock().unwrap().push((action, request));
        answer
    }
    let asked = Asked::default();
    (listen(Router::new().fallback(answer).with_state(asked.clone())).await, asked)
}

/// A program of the merchant's that answers with the status in its path.
async fn program() -> (String, Asked) {
    async fn answer(State(got): State<Asked>, uri: axum::http::Uri, headers: HeaderMap, body: Bytes) -> StatusCode {
        let signed = headers["webhook-signature"].to_str().unwrap().to_owned();
        got.lock().unwrap().push((signed, serde_json::from_slice(&body).unwrap()));
        uri.path().trim_start_matches('/').parse::<u16>().ok().and_then(|n| StatusCode::from_u16(n).ok()).unwrap()
    }
    let got = Asked::default();
    (listen(Router::new().fallback(answer).with_state(got.clone())).await, got)
}

struct World {
    table: Table,
    clock: Arc<SimulatedClock>,
    deliveries: Deliveries,
    sqs: Asked,
}

async fn world() -> World {
    let engine = Engine::memory();
    let table = Table::new(engine.client(), "dueday", TimeDelta::days(190));
    table.create_if_absent().await.unwrap();
    let clock = Arc::new(SimulatedClock::new("2027-01-31T06:00:00Z".parse().unwrap(), 1));
    let (queue, sqs) = sqs().await;
    let sdk =
        aws_config::defaults(aws_config::BehaviorVersion::latest()).region("eu-west-1").test_credentials().load().await;
    let config = aws_sdk_sqs::config::Builder::from(&sdk).endpoint_url(&queue).build();
    let sender = Sender::new(Reach::Anywhere, Duration::from_secs(5)).unwrap();
    let env = |name: &str| (name == "DUEDAY_DELIVERY_QUEUE").then(|| format!("{queue}/queue"));
    let client = aws_sdk_sqs::Client::from_conf(config);
    let deliveries = Deliveries::new(table.clone(), sender, clock.clone(), client, Env(&env)).unwrap();
    World { table, clock, deliveries, sqs }
}

impl World {
    async fn endpoint(&self, n: u8, url: &str, types: &[&str]) -> WebhookEndpoint {
        let endpoint = WebhookEndpoint {
            id: Ulid::from_parts(1, n.into()),
            url: url.parse().unwrap(),
            types: types.iter().map(|name| name.parse().unwrap()).collect(),
            disabled_because: None,
            secret: Secret::new([n; 32]),
            previous_secret: None,
            created_at: self.clock.now(),
            version: 1,
        };
        self.table.create_webhook_endpoint(&endpoint).await.unwrap();
        endpoint
    }

    /// Hands over messages with these bodies, and answers which of them are to come again.
    async fn handle(&self, bodies: &[String]) -> Vec<usize> {
        let event = LambdaEvent::new(batch(bodies), Context::default());
        let answer: SqsBatchResponse = deliver::handle(&self.deliveries, event).await.unwrap();
        answer.batch_item_failures.iter().map(|failure| failure.item_identifier.parse().unwrap()).collect()
    }

    /// The bodies of what was sent to the queue, and the waits that were asked of it, since last asked.
    fn queued(&self) -> (Vec<String>, Vec<i64>) {
        let asked = std::mem::take(&mut *self.sqs.lock().unwrap());
        let (mut sent, mut waits) = (Vec::new(), Vec::new());
        for (action, request) in asked {
            match action.as_str() {
                "SendMessageBatch" => sent.extend(
                    request["Entries"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|entry| entry["MessageBody"].as_str().unwrap().to_owned()),
                ),
                "ChangeMessageVisibility" => {
                    let wait = request["VisibilityTimeout"].as_i64().unwrap();
                    assert!(wait < 43_200, "SQS counts 12 hours from when it was received, and refuses more");
                    waits.push(wait);
                }
                other => panic!("{other}"),
            }
        }
        (sent, waits)
    }
}

fn batch(bodies: &[String]) -> SqsEvent {
    let records = bodies.iter().enumerate().map(|(n, body)| {
        json!({ "messageId": n.to_string(), "receiptHandle": format!("handle-{n}"), "body": body, "eventSource": "aws:sqs",
            "attributes": {}, "messageAttributes": {} })
    });
    serde_json::from_value(json!({ "Records": records.collect::<Vec<_>>() })).unwrap()
}

fn event(id: &str, event_type: &str) -> String {
    json!({ "specversion": "1.0", "id": id, "type": event_type, "data": {} }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn event_becomes_a_delivery_for_each_endpoint_that_wants_it_once() {
    let (world, (program, got)) = (world().await, program().await);
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
    assert_eq!(delivered[2].0, paid.secret.sign("e2", at, &succeeded), "each with its own secret");

    // The bus tells it again, and the queue hands over again what is done.
    assert_eq!(world.handle(&[&[created][..], &sent].concat()).await, Vec::<usize>::new());
    assert!(got.lock().unwrap().is_empty() && world.queued().0.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_that_fails_waits_longer_each_time_and_then_disables_its_endpoint() {
    let (world, (program, got)) = (world().await, program().await);
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
async fn delivery_is_tried_again_after_it_was_mended_and_asked_for() {
    let (world, (program, got)) = (world().await, program().await);
    let endpoint = world.endpoint(1, &format!("{program}/503"), &[]).await;
    world.handle(&[event("e1", "account.created")]).await;
    let (sent, _) = world.queued();
    assert_eq!(world.handle(&sent).await, [0]);
    let key: DeliveryKey = serde_json::from_str(&sent[0]).unwrap();
    let mended =
        |stored: &WebhookEndpoint| WebhookEndpoint { url: format!("{program}/200").parse().unwrap(), ..stored.clone() };
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
    let (world, (program, _)) = (world().await, program().await);
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
    let endpoint = WebhookEndpoint {
        id: "01JZXCVBNM0123456789ABCDEF".parse().unwrap(),
        url: format!("{}/200", program.replace("http", "https")).parse().unwrap(),
        types: Vec::new(),
        disabled_because: None,
        secret: Secret::new([1; 32]),
        previous_secret: None,
        created_at: Utc::now(),
        version: 1,
    };
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
