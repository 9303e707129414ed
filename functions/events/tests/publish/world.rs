//! The test environment: the change stream of three months of billing for two subscriptions, on an embedded DynamoDB
//! engine.

use std::sync::Arc;

use billing::{PaymentMethod, Subscription};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clock::SimulatedClock;
use deployment::InMemoryDeployment;
use emulator::{Engine, TableStream};
use serde_json::{Value, json};
use store::{CreateOutcome, Table, read_stream_image};
use sweep::BatchRequest;
use testkit::{RecordedMails, read_test_config, sample_account, sample_subscription};
use tokio::sync::OnceCell;

use crate::event_bridge::FakeEventBridge;

/// The name of the table whose stream is published.
pub const TABLE: &str = "dueday";

/// Returns 06:00 UTC on `date`.
fn six_o_clock(date: &str) -> DateTime<Utc> {
    date.parse::<NaiveDate>().unwrap().and_hms_opt(6, 0, 0).unwrap().and_utc()
}

/// The stream records of [`simulate_three_months`].
static BATCH: OnceCell<Value> = OnceCell::const_new();

/// Returns the stream records of three months of billing, as one Lambda event. The months are simulated only once,
/// because all tests publish the same records.
pub async fn batch_of_three_months() -> Value {
    BATCH.get_or_init(simulate_three_months).await.clone()
}

/// Simulates the daily batches of three months, and returns all stream records of items that belong to accounts. One
/// subscription is paid; the card of the other is always declined.
async fn simulate_three_months() -> Value {
    let clock = SimulatedClock::new(six_o_clock("2026-01-01"), 1);
    let system = InMemoryDeployment::new(read_test_config(&[]).unwrap(), clock, Arc::new(RecordedMails::default()))
        .await
        .unwrap();
    let stream = system.engine.stream(TABLE).unwrap();
    let table = &system.deployment.table;
    table.put_account(&sample_account()).await.unwrap();
    let begun = "2026-01-01".parse().unwrap();
    let poor = PaymentMethod {
        customer: "cus_2".parse().unwrap(),
        payment_method: "pm_card_visa_chargeDeclinedInsufficientFunds".parse().unwrap(),
    };
    for subscription in
        [sample_subscription(10, begun), Subscription { payment_method: poor, ..sample_subscription(12, begun) }]
    {
        assert_eq!(table.create_subscription(&subscription, None).await.unwrap(), CreateOutcome::Created);
    }
    let (reminders, payments) =
        (system.deployment.reminder_batch().await.unwrap(), system.deployment.payment_batch().await.unwrap());
    let days = begun.iter_days().take_while(|day| *day <= "2026-03-31".parse().unwrap());
    for day in days {
        let now = six_o_clock(&day.to_string());
        system.clock.set(now);
        let deadline = now + TimeDelta::hours(1);
        reminders.run(&BatchRequest::for_date(day), deadline).await.unwrap();
        payments.run(&BatchRequest::for_date(day), deadline).await.unwrap();
    }
    account_records(&stream)
}

/// Returns all records in `stream` of items that belong to accounts, as one Lambda event.
fn account_records(stream: &TableStream) -> Value {
    let (mut all, mut position) = (Vec::new(), None);
    loop {
        let mut page = stream.records_after(position.as_deref(), 1_000).unwrap();
        let Some(last) = page["Records"].as_array().unwrap().last() else { break };
        position = last["dynamodb"]["SequenceNumber"].as_str().map(str::to_owned);
        all.append(page["Records"].as_array_mut().unwrap());
    }
    all.retain(|record| record["dynamodb"]["Keys"]["PK"]["S"].as_str().unwrap().starts_with("ACC#"));
    assert!(all.len() > 30, "{} records", all.len());
    json!({ "Records": all })
}

/// Returns the ids of the events of `batch` in order. Computes them only with the function
/// [`billing::events_between_images`], without the code that the tests check.
pub fn expected_event_ids(batch: &Value) -> Vec<String> {
    let mut ids = Vec::new();
    for record in batch["Records"].as_array().unwrap() {
        let read = |name: &str| {
            let item: serde_dynamo::Item = serde_json::from_value(record["dynamodb"].get(name)?.clone()).unwrap();
            read_stream_image(&item.into()).unwrap()
        };
        let events = billing::events_between_images(read("OldImage").as_ref(), read("NewImage").as_ref(), Utc::now());
        ids.extend(events.into_iter().map(|event| event.id));
    }
    ids
}

/// Returns the text of the field `name` in each of the events or entries `details`.
pub fn texts(details: &[Value], name: &str) -> Vec<String> {
    details.iter().map(|detail| detail[name].as_str().unwrap().to_owned()).collect()
}

/// Creates a publisher on `bus` with the real AWS SDK. There is no webhook endpoint.
pub async fn publisher(bus: &FakeEventBridge) -> publishing::Publisher<events_function::EventBridge> {
    let table = Table::new(Engine::in_memory().client(), TABLE);
    table.create_if_absent().await.unwrap();
    publisher_with_table(bus, table).await
}

/// Creates a publisher on `bus` with the real AWS SDK, which reads the webhook endpoints in `table`.
pub async fn publisher_with_table(
    bus: &FakeEventBridge,
    table: Table,
) -> publishing::Publisher<events_function::EventBridge> {
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .region("eu-west-1")
        .test_credentials()
        .endpoint_url(&bus.url)
        .load()
        .await;
    let client = aws_sdk_eventbridge::Client::new(&config);
    publishing::Publisher::new(events_function::EventBridge::new(client, "dueday-events".to_owned(), table))
}
