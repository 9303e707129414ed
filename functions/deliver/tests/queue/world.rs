//! The environment of the tests: the `deliver` function with a table in the embedded engine and a stand-in for its
//! queue.

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use billing::{DeliveryKey, Secret, WebhookEndpoint};
use chrono::{DateTime, TimeDelta};
use clock::{Clock, SimulatedClock};
use deliver_function::DeliveryHandler;
use emulator::{Engine, EngineConnection, Injector};
use encryption::EncryptionKeys;
use lambda_runtime::{Context, LambdaEvent};
use outbound::{AllowedAddresses, Deliverer, EndpointSecrets, QueuedDelivery, Sender};
use serde_json::{Value, json};
use sqs::SqsQueue;
use store::Table;
use testkit::encryption_keys;
use ulid::Ulid;

use crate::servers::{ReceivedRequests, start_sqs, start_sqs_with};

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
        Self::create(EngineConnection::default(), keys, start_sqs().await).await
    }

    /// Creates a world in which the function's calls to the table and to SQS pass `injector`.
    pub async fn with_injector(injector: Arc<Injector>) -> Self {
        Self::create(
            EngineConnection::with_injector(injector.clone()),
            encryption_keys(),
            start_sqs_with(injector).await,
        )
        .await
    }

    /// Creates a world in which `connection` connects the function to the table. `queue` is the URL of the stand-in for
    /// SQS, which records its requests in `sqs_requests`.
    async fn create(
        connection: EngineConnection,
        keys: EncryptionKeys,
        (queue, sqs_requests): (String, ReceivedRequests),
    ) -> Self {
        let engine = Engine::memory();
        let table = Table::new(engine.client(), "dueday");
        table.create_if_absent().await.unwrap();
        let clock = Arc::new(SimulatedClock::new("2027-01-31T06:00:00Z".parse().unwrap(), 1));
        let sdk = aws_config::defaults(aws_config::BehaviorVersion::latest());
        let sdk = sdk.region("eu-west-1").test_credentials().load().await;
        let config = aws_sdk_sqs::config::Builder::from(&sdk).endpoint_url(&queue).build();
        let sender = Sender::new(AllowedAddresses::Any, Duration::from_secs(5)).unwrap();
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

    /// Invokes the function with all messages in `queue`. Removes the finished messages, adds the messages that the
    /// function sent, and advances the clock to the earliest retry. Returns whether the queue still has messages.
    pub async fn process_queue(&self, queue: &mut Vec<String>) -> bool {
        let remaining = self.handle(queue).await;
        let mut index = 0..;
        queue.retain(|_| remaining.contains(&index.next().unwrap()));
        let (sent, delays) = self.take_sqs_requests();
        queue.extend(sent);
        let now = self.clock.now();
        let next_retry = delays.into_iter().min().map_or(now, |delay: i64| now + TimeDelta::seconds(delay));
        self.clock.set(DateTime::max(now, next_retry));
        !queue.is_empty()
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
        let response: SqsBatchResponse = deliver_function::handle(&self.deliveries, event).await.unwrap();
        response.batch_item_failures.iter().map(|failure| failure.item_identifier.parse().unwrap()).collect()
    }

    /// Removes the requests to SQS that were recorded since the last call. Returns the bodies of the sent messages, and
    /// the delays in seconds of the delayed messages. Asserts that each message is in the message group of its endpoint.
    pub fn take_sqs_requests(&self) -> (Vec<String>, Vec<i64>) {
        let requests = std::mem::take(&mut *self.sqs_requests.lock().unwrap());
        let (mut sent, mut delays) = (Vec::new(), Vec::new());
        for (action, request) in requests {
            assert_eq!(action, "SendMessageBatch");
            for entry in request["Entries"].as_array().unwrap() {
                let body = entry["MessageBody"].as_str().unwrap().to_owned();
                let delivery: QueuedDelivery = serde_json::from_str(&body).unwrap();
                assert_eq!(entry["MessageGroupId"], delivery.key.endpoint.to_string());
                let delay = entry["DelaySeconds"].as_i64();
                assert_eq!(delay.is_some(), delivery.not_before.is_some(), "a delayed message contains its instant");
                assert!(delay.is_none_or(|delay| delay <= 900), "SQS rejects more than 15 minutes");
                sent.push(body);
                delays.extend(delay);
            }
        }
        (sent, delays)
    }
}

/// Returns the signing secret of the endpoint number `n`.
pub fn secret(n: u8) -> Secret {
    Secret::new([n; 32])
}

/// Returns the Lambda event with which SQS invokes the function for messages with these `bodies`.
fn batch(bodies: &[String]) -> SqsEvent {
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
