//! The function, its table, and its queue.

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use billing::{Secret, WebhookEndpoint};
use chrono::{DateTime, TimeDelta};
use clock::{Clock, SimulatedClock};
use config::Env;
use deliver_function::Deliveries;
use delivery::{Reach, Sender};
use emulator::{Engine, Injector, Wire};
use lambda_runtime::{Context, LambdaEvent};
use serde_json::json;
use store::Table;
use ulid::Ulid;

use crate::servers::{Asked, sqs, sqs_through};

pub struct World {
    pub table: Table,
    pub clock: Arc<SimulatedClock>,
    pub deliveries: Deliveries,
    engine: Engine,
    sqs: Asked,
}

impl World {
    pub async fn new() -> Self {
        Self::over(Wire::default(), sqs().await).await
    }

    /// One whose calls to the table and to SQS pass `injector`.
    pub async fn through(injector: Arc<Injector>) -> Self {
        Self::over(Wire::through(injector.clone()), sqs_through(injector).await).await
    }

    async fn over(wire: Wire, (queue, sqs): (String, Asked)) -> Self {
        let engine = Engine::memory();
        let table = Table::new(engine.client(), "dueday", TimeDelta::days(190));
        table.create_if_absent().await.unwrap();
        let clock = Arc::new(SimulatedClock::new("2027-01-31T06:00:00Z".parse().unwrap(), 1));
        let sdk = aws_config::defaults(aws_config::BehaviorVersion::latest());
        let sdk = sdk.region("eu-west-1").test_credentials().load().await;
        let config = aws_sdk_sqs::config::Builder::from(&sdk).endpoint_url(&queue).build();
        let sender = Sender::new(Reach::Anywhere, Duration::from_secs(5)).unwrap();
        let env = |name: &str| (name == "DUEDAY_DELIVERY_QUEUE").then(|| format!("{queue}/queue"));
        let client = aws_sdk_sqs::Client::from_conf(config);
        let wired = Table::new(engine.client_over(Arc::new(wire)), "dueday", TimeDelta::days(190));
        let deliveries = Deliveries::new(wired, sender, clock.clone(), client, Env(&env)).unwrap();
        Self { table, clock, deliveries, engine, sqs }
    }

    /// An endpoint whose item lacks its secret.
    pub async fn spoilt_endpoint(&self, n: u8) -> Ulid {
        let endpoint = self.endpoint(n, "http://127.0.0.1/", &[]).await;
        let key = json!({ "PK": { "S": "WEBHOOKS" }, "SK": { "S": format!("ENDPOINT#{}", endpoint.id) } });
        let spoil = json!({ "TableName": "dueday", "Key": key, "UpdateExpression": "REMOVE Secret" });
        self.engine.ask("UpdateItem", &spoil).unwrap();
        endpoint.id
    }

    /// Hands over what is in the `queue`, which holds afterwards what is still in it, and waits for what comes next. Answers
    /// whether anything is left.
    pub async fn work_on(&self, queue: &mut Vec<String>) -> bool {
        let again = self.handle(queue).await;
        let mut place = 0..;
        queue.retain(|_| again.contains(&place.next().unwrap()));
        let (sent, waits) = self.queued();
        queue.extend(sent);
        let now = self.clock.now();
        let wait = waits.into_iter().min().map_or(now, |wait: i64| now + TimeDelta::seconds(wait));
        self.clock.set(DateTime::max(now, wait));
        !queue.is_empty()
    }

    pub async fn endpoint(&self, n: u8, url: &str, types: &[&str]) -> WebhookEndpoint {
        let (id, secret) = (Ulid::from_parts(1, n.into()), Secret::new([n; 32]));
        let endpoint = WebhookEndpoint {
            types: types.iter().map(|name| name.parse().unwrap()).collect(),
            ..WebhookEndpoint::new(id, url.parse().unwrap(), secret, self.clock.now())
        };
        self.table.create_webhook_endpoint(&endpoint).await.unwrap();
        endpoint
    }

    /// Hands over messages with these bodies, and answers which of them are to come again.
    pub async fn handle(&self, bodies: &[String]) -> Vec<usize> {
        let event = LambdaEvent::new(batch(bodies), Context::default());
        let answer: SqsBatchResponse = deliver_function::handle(&self.deliveries, event).await.unwrap();
        answer.batch_item_failures.iter().map(|failure| failure.item_identifier.parse().unwrap()).collect()
    }

    /// The bodies of what was sent to the queue, and the waits that were asked of it, since last asked.
    pub fn queued(&self) -> (Vec<String>, Vec<i64>) {
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

pub fn event(id: &str, event_type: &str) -> String {
    json!({ "specversion": "1.0", "id": id, "type": event_type, "data": {} }).to_string()
}
