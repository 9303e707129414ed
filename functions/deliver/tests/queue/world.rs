//! The environment of the tests: the `deliver` function with a table in the embedded engine and a stand-in for its
//! queue.

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::SqsBatchResponse;
use billing::{DeliveryKey, SigningSecret, WebhookEndpoint};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock, SimulatedClock};
use deliver_function::{DeliverRequest, DeliveryHandler};
use emulator::{Engine, EngineConnection, FaultInjector};
use encryption::EncryptionKeys;
use lambda_runtime::{Context, LambdaEvent};
use outbound::{AllowedAddresses, Deliverer, EndpointSecrets, WebhookSender};
use serde_json::{Value, json};
use sqs::SqsQueue;
use store::Table;
use testkit::encryption_keys;
use ulid::Ulid;

use crate::servers::{ReceivedRequests, start_sqs, start_sqs_with};

/// The largest number of invocations of a function in one chain of messages. Lambda stops longer chains ("Use Lambda
/// recursive loop detection to prevent infinite loops" in the Lambda developer guide).
const MAX_CHAIN_LENGTH: u32 = 16;

/// A message of the queue.
#[derive(Clone, Debug)]
pub struct Message {
    pub body: String,
    /// The number of invocations of the function in the chain of messages that ends with this message. On AWS, it is in
    /// the `Lineage` of the trace header, which the SDK copies from the invocation to each message that the function sends.
    chain_length: u32,
}

impl Message {
    /// Creates a message that no message of the queue has caused: it comes from the bus or from the schedule.
    pub fn first(body: String) -> Self {
        Self { body, chain_length: 1 }
    }

    /// Creates the message with `body` that the function sent when it handled `handled`: the message about the same event
    /// has caused it.
    fn caused_by(handled: &[Self], body: String) -> Self {
        let event_of = |body: &str| {
            let content: Value = serde_json::from_str(body).unwrap();
            content.get("event").unwrap_or(&content["id"]).clone()
        };
        let causes = handled.iter().filter(|cause| event_of(&cause.body) == event_of(&body));
        let longest = causes.map(|cause| cause.chain_length).max().expect("a message about the same event");
        Self { body, chain_length: longest + 1 }
    }
}

/// A table, the state of the `deliver` function, and the requests that the stand-in for SQS has received.
pub struct World {
    pub table: Table,
    pub clock: Arc<SimulatedClock>,
    pub deliveries: DeliveryHandler,
    engine: Engine,
    sqs_requests: ReceivedRequests,
}

impl World {
    /// Creates a world without faults, with the usual encryption keys.
    pub async fn new() -> Self {
        Self::with_keys(encryption_keys()).await
    }

    /// Creates a world in which the function has the encryption keys `keys`.
    pub async fn with_keys(keys: EncryptionKeys) -> Self {
        let (queue, sqs_requests) = start_sqs().await;
        Self::create(EngineConnection::default(), keys, queue, sqs_requests).await
    }

    /// Creates a world in which the function's calls to the table and to SQS pass `injector`.
    pub async fn with_injector(injector: Arc<FaultInjector>) -> Self {
        let connection = EngineConnection::with_injector(injector.clone());
        let (queue, sqs_requests) = start_sqs_with(injector).await;
        Self::create(connection, encryption_keys(), queue, sqs_requests).await
    }

    /// Creates a world in which `connection` connects the function to the table. `queue` is the URL of the stand-in for
    /// SQS, which records its requests in `sqs_requests`.
    async fn create(
        connection: EngineConnection,
        keys: EncryptionKeys,
        queue: String,
        sqs_requests: ReceivedRequests,
    ) -> Self {
        let engine = Engine::in_memory();
        let table = Table::new(engine.client(), "dueday");
        table.create_if_absent().await.unwrap();
        let clock = Arc::new(SimulatedClock::new("2027-01-31T06:00:00Z".parse().unwrap(), 1));
        let sdk = aws_config::defaults(aws_config::BehaviorVersion::latest());
        let sdk = sdk.region("eu-west-1").test_credentials().load().await;
        let config = aws_sdk_sqs::config::Builder::from(&sdk).endpoint_url(&queue).build();
        let sender = WebhookSender::new(AllowedAddresses::Any, Duration::from_secs(5)).unwrap();
        let queue = SqsQueue::new(aws_sdk_sqs::Client::from_conf(config), format!("{queue}/queue"));
        let faulty_table = Table::new(engine.client_with_connection(Arc::new(connection)), "dueday");
        let deliverer = Deliverer::new(faulty_table, sender, keys, clock.clone());
        let deliveries = DeliveryHandler::new(deliverer, queue, clock.clone());
        Self { table, clock, deliveries, engine, sqs_requests }
    }

    /// Creates the endpoint number `n` and removes the secret from its item, so that the item cannot be read. Returns
    /// the id of the endpoint.
    pub async fn create_unreadable_endpoint(&self, n: u8) -> Ulid {
        let endpoint = self.create_endpoint(n, "http://127.0.0.1/", &[]).await;
        let key = json!({ "PK": { "S": "WEBHOOKS" }, "SK": { "S": format!("ENDPOINT#{}", endpoint.id) } });
        let remove_secret = json!({ "TableName": "dueday", "Key": key, "UpdateExpression": "REMOVE Secret" });
        self.engine.execute("UpdateItem", &remove_secret).unwrap();
        endpoint.id
    }

    /// Removes the attribute `name` from the item of the delivery `key`, so that the item cannot be read.
    pub fn corrupt_delivery(&self, key: &DeliveryKey, name: &str) {
        let items = self.engine.execute("Scan", &json!({ "TableName": "dueday" })).unwrap();
        let is_delivery = |item: &&Value| {
            item["SK"]["S"] == format!("EVENT#{}", key.event)
                && item["PK"]["S"].as_str().unwrap().starts_with(&format!("WEBHOOK#{}", key.endpoint))
        };
        let item = items["Items"].as_array().unwrap().iter().find(is_delivery).unwrap();
        let key = json!({ "PK": item["PK"], "SK": item["SK"] });
        let remove = json!({ "TableName": "dueday", "Key": key, "UpdateExpression": "REMOVE #N",
            "ExpressionAttributeNames": { "#N": name } });
        self.engine.execute("UpdateItem", &remove).unwrap();
    }

    /// Invokes the function with all messages in `queue`. Removes the finished messages, and adds the messages that the
    /// function sent. If the queue is empty, first advances the clock to the next start of the schedule at which a
    /// delivery is due, and invokes the function as the schedule does. Returns whether a message or a waiting delivery
    /// is left.
    pub async fn process_queue(&self, queue: &mut Vec<Message>) -> bool {
        if queue.is_empty() {
            let next_start = self.clock.now() + TimeDelta::minutes(1);
            self.clock.set(self.next_tries().into_iter().min().map_or(next_start, |next| next.max(next_start)));
            self.send_due().await;
            queue.extend(self.take_sent().into_iter().map(Message::first));
        }
        // Lambda does not invoke the function with a message of a longer chain: the message is lost.
        queue.retain(|message| message.chain_length <= MAX_CHAIN_LENGTH);
        let bodies: Vec<_> = queue.iter().map(|message| message.body.clone()).collect();
        let remaining = self.handle(&bodies).await;
        let sent: Vec<_> = self.take_sent().into_iter().map(|body| Message::caused_by(queue, body)).collect();
        let mut index = 0..;
        queue.retain(|_| remaining.contains(&index.next().unwrap()));
        queue.extend(sent);
        !queue.is_empty() || !self.next_tries().is_empty()
    }

    /// Returns the times of the next tries in the list of waiting deliveries.
    pub fn next_tries(&self) -> Vec<DateTime<Utc>> {
        let items = self.engine.execute("Scan", &json!({ "TableName": "dueday" })).unwrap();
        let keys = items["Items"].as_array().unwrap().iter().map(|item| item["SK"]["S"].as_str().unwrap());
        let times = keys.filter_map(|key| key.strip_prefix("WAITING#")?.split('#').next());
        times.map(|time| time.parse().unwrap()).collect()
    }

    /// Marks the table as a copy that no operator has confirmed.
    pub async fn mark_as_copy(&self) {
        let settings = testkit::read_test_config(&[]).unwrap().table.initial_settings(self.clock.as_ref());
        self.table.init_settings(&settings).await.unwrap();
        self.table.record_copy(self.clock.now()).await.unwrap();
    }

    /// Invokes the function as the schedule does, which sends the due deliveries to the queue.
    pub async fn send_due(&self) {
        let event = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/deliver-due.json"));
        let request = serde_json::from_str(&event.unwrap()).unwrap();
        deliver_function::handle_deliver_invocation(&self.deliveries, LambdaEvent::new(request, Context::default()))
            .await
            .unwrap();
    }

    /// Invokes the function as the schedule does, and returns the bodies of the messages that it sent.
    pub async fn send_due_and_take(&self) -> Vec<String> {
        self.send_due().await;
        self.take_sent()
    }

    /// Creates the endpoint number `n` at `url` for the event types `types`, or for all types if `types` is empty.
    pub async fn create_endpoint(&self, n: u8, url: &str, types: &[&str]) -> WebhookEndpoint {
        let id = Ulid::from_parts(1, n.into());
        let secret = EndpointSecrets::new(encryption_keys(), self.clock.clone()).encrypt(id, &secret(n));
        let endpoint = WebhookEndpoint {
            types: types.iter().map(|name| name.parse().unwrap()).collect(),
            ..WebhookEndpoint::new(id, url.parse().unwrap(), secret, self.clock.now())
        };
        self.table.create_webhook_endpoint(&endpoint, None).await.unwrap();
        endpoint
    }

    /// Invokes the function with messages that have these bodies. Returns the indexes of the messages that stay in the
    /// queue.
    pub async fn handle(&self, bodies: &[String]) -> Vec<usize> {
        let event = LambdaEvent::new(batch(bodies), Context::default());
        let response: SqsBatchResponse =
            deliver_function::handle_deliver_invocation(&self.deliveries, event).await.unwrap();
        response.batch_item_failures.iter().map(|failure| failure.item_identifier.parse().unwrap()).collect()
    }

    /// Removes the requests to SQS that were recorded since the last call. Returns the bodies of the sent messages.
    /// Asserts that each message is in the message group of its endpoint, and is not delayed.
    pub fn take_sent(&self) -> Vec<String> {
        let requests = std::mem::take(&mut *self.sqs_requests.lock().unwrap());
        let mut sent = Vec::new();
        for (action, request) in requests {
            assert_eq!(action, "SendMessageBatch");
            for entry in request["Entries"].as_array().unwrap() {
                let body = entry["MessageBody"].as_str().unwrap().to_owned();
                let key: DeliveryKey = serde_json::from_str(&body).unwrap();
                assert_eq!(
                    (&entry["MessageGroupId"], &entry["DelaySeconds"]),
                    (&key.endpoint.to_string().into(), &Value::Null)
                );
                sent.push(body);
            }
        }
        sent
    }
}

/// Returns the signing secret of the endpoint number `n`.
pub fn secret(n: u8) -> SigningSecret {
    SigningSecret::new([n; 32])
}

/// Returns the Lambda event with which SQS invokes the function for messages with these `bodies`.
fn batch(bodies: &[String]) -> DeliverRequest {
    let records = bodies.iter().enumerate().map(|(n, body)| {
        json!({ "messageId": n.to_string(), "receiptHandle": format!("handle-{n}"), "body": body, "eventSource": "aws:sqs",
            "attributes": {}, "messageAttributes": {} })
    });
    serde_json::from_value(json!({ "Records": records.collect::<Vec<_>>() })).unwrap()
}

/// Returns the body of a queue message that contains the event `id`.
pub fn event(id: &str, event_type: &str) -> String {
    json!({ "specversion": "1.0", "id": id, "type": event_type, "data": {} }).to_string()
}
