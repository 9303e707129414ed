//! The measured workload: subscriptions that are reminded, charged and mailed once, on the embedded engine, with the
//! code of the functions. The counts of one payment are the difference between two runs of different sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use billing::{Account, Subscription, SubscriptionId};
use chrono::{DateTime, TimeDelta, Utc};
use clock::SimulatedClock;
use deployment::InMemoryDeployment;
use embedded_metrics::MetricsLayer;
use emulator::{EngineConnection, TableStream};
use events_function::NO_WEBHOOK_ENDPOINT;
use notices::CustomerNotifier;
use publishing::Publisher;
use serde_json::{Value, json};
use store::CreateOutcome;
use sweep::BatchRequest;
use testkit::{RecordedMails, read_test_config, sample_account, sample_subscription};
use tracing::level_filters::LevelFilter;
use tracing::{Instrument as _, Span};
use tracing_subscriber::layer::SubscriberExt as _;
use ulid::Ulid;

use super::meters::{LogBytes, Meter, RecordedEvents};
use super::stack::Stack;

/// The number of shards of the table. The subscriptions are distributed evenly among them.
const SHARDS: u32 = 4;

/// A number that is counted, such as the write units of the reminders. A notice is a mail to a customer about an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Count {
    ReminderWrites,
    ReminderReads,
    PaymentWrites,
    PaymentReads,
    NoticeWrites,
    NoticeReads,
    NoticeRequests,
    StreamRecords,
    /// The stream records that the filter passes to the function `events`.
    PassedRecords,
    Events,
    DeliveryMessages,
    NoticeMessages,
    ArchivedEvents,
    /// The bytes of the archived events, each rounded up as Firehose counts them.
    ArchivedBytes,
    Mails,
    LogBytes,
    /// The bytes of the account and of the subscription.
    SubscriptionBytes,
    /// The bytes of the receipt and of other records, which expire.
    RecordBytes,
}

/// The counted numbers of a workload.
pub type Counts = BTreeMap<Count, f64>;

/// Firehose counts each record as a multiple of this number of bytes.
const FIREHOSE_STEP: usize = 5 * 1024;
/// The bytes that DynamoDB counts for each item in addition to its attributes.
const ITEM_OVERHEAD: f64 = 100.0;

/// The number of messages in an invocation of the function `notices`, which waits for a full batch.
const MESSAGES_PER_BATCH: usize = 10;

/// Returns a tracing span like the span of a Lambda invocation, whose fields are in each log line of the invocation.
fn invocation_span() -> Span {
    tracing::info_span!(
        "Lambda runtime invoke",
        requestId = "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
        xrayTraceId = "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=1"
    )
}

fn six_o_clock(date: &str) -> DateTime<Utc> {
    format!("{date}T06:00:00Z").parse().unwrap()
}

/// Returns the subscription number `n`. Each subscription has its own account.
fn subscription(n: u32) -> Subscription {
    let id = SubscriptionId::new(Ulid::from_parts(2, n.into()));
    let account = format!("account-{n}").parse().unwrap();
    Subscription { id, account, shard: n % SHARDS, ..sample_subscription(10, "2024-01-01".parse().unwrap()) }
}

/// Returns all records of `stream` after `position`, and advances `position`.
pub fn new_records(stream: &TableStream, position: &mut Option<String>) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let mut read = stream.records_after(position.as_deref(), 1_000).unwrap();
        let records = read["Records"].as_array_mut().unwrap();
        let Some(last) = records.last() else { return all };
        *position = last["dynamodb"]["SequenceNumber"].as_str().map(str::to_owned);
        all.append(records);
    }
}

/// Returns the difference in bytes between the items after and before the change in `record`.
fn item_growth_in_bytes(record: &Value) -> f64 {
    let size = |image: &Value| match image.as_object() {
        Some(item) => {
            ITEM_OVERHEAD + item.iter().map(|(name, value)| name.len() + value_size(value)).sum::<usize>() as f64
        }
        None => 0.0,
    };
    size(&record["dynamodb"]["NewImage"]) - size(&record["dynamodb"]["OldImage"])
}

/// Returns the bytes of an attribute's value, approximately as DynamoDB counts them.
fn value_size(value: &Value) -> usize {
    let (kind, content) = value.as_object().and_then(|typed| typed.iter().next()).expect("a typed value");
    match (kind.as_str(), content) {
        ("S", Value::String(text)) => text.len(),
        ("N", Value::String(digits)) => digits.len() / 2 + 1,
        ("M", Value::Object(fields)) => {
            3 + fields.iter().map(|(name, value)| name.len() + value_size(value)).sum::<usize>()
        }
        ("L", Value::Array(elements)) => 3 + elements.iter().map(|element| 1 + value_size(element)).sum::<usize>(),
        _ => 1,
    }
}

/// Runs the whole workload for `payments` subscriptions with the environment variables `settings`. Returns the counted
/// numbers.
pub async fn count(stack: &Stack, payments: u32, settings: &[(&str, &str)]) -> Counts {
    let clock = SimulatedClock::new(six_o_clock("2024-01-01"), 1);
    let mailer = Arc::new(RecordedMails::default());
    let system = InMemoryDeployment::new(read_test_config(settings).unwrap(), clock, mailer.clone()).await.unwrap();
    let stream = system.engine.stream("dueday").unwrap();
    let meter = Arc::new(Meter::new(system.engine.clone()));
    let deployment = system.with_connection(Arc::new(EngineConnection::default().with_observer(meter.clone())));
    // The first run on a table stores the gateway's account in the settings. So run once before the requests are
    // counted.
    deployment.payment_batch().await.unwrap().run(&request("2024-01-01"), deadline("2024-01-01")).await.unwrap();
    for n in 0..payments {
        let subscription = subscription(n);
        let account = Account { id: subscription.account.clone(), ..sample_account() };
        system.deployment.table.put_account(&account).await.unwrap();
        let created = system.deployment.table.create_subscription(&subscription, None).await.unwrap();
        assert_eq!(created, CreateOutcome::Created);
    }
    let mut position = None;
    let mut counts: Counts = BTreeMap::new();
    counts.insert(Count::SubscriptionBytes, new_records(&stream, &mut position).iter().map(item_growth_in_bytes).sum());
    meter.take();
    let log = LogBytes::default();
    let writer = log.clone();
    let metrics = MetricsLayer::new("stack-NoticesFunction-0123456789AB".to_owned(), log.clone());
    let lines = logs::create_line_layer(true, move || writer.clone());
    let lines = tracing_subscriber::registry().with(LevelFilter::INFO).with(metrics).with(lines);
    let logging = testkit::capture_logs(lines);

    system.clock.set(six_o_clock("2024-01-03"));
    let run =
        deployment.reminder_batch().await.unwrap().run(&request("2024-01-03"), deadline("2024-01-03")).await.unwrap();
    assert!(run.is_done(), "{run:?}");
    let [reads, writes, _] = meter.take();
    counts.extend([(Count::ReminderReads, reads), (Count::ReminderWrites, writes)]);

    system.clock.set(six_o_clock("2024-01-10"));
    let run =
        deployment.payment_batch().await.unwrap().run(&request("2024-01-10"), deadline("2024-01-10")).await.unwrap();
    assert!(run.is_done(), "{run:?}");
    let [reads, writes, _] = meter.take();
    counts.extend([(Count::PaymentReads, reads), (Count::PaymentWrites, writes)]);
    let mut records = new_records(&stream, &mut position);

    let messages = route(stack, &records, &mut counts).await;
    let merchant = deployment.config.merchant.clone();
    let notices = CustomerNotifier::new(deployment.table.clone(), mailer.clone(), merchant, system.clock.clone());
    for batch in messages.chunks(MESSAGES_PER_BATCH) {
        let batch = batch.iter().map(|message| (String::new(), message.clone()));
        let failed = notices_function::send_notices(&notices, batch).instrument(invocation_span()).await;
        assert_eq!(failed, Vec::<String>::new());
    }
    let [reads, writes, requests] = meter.take();
    counts.extend([(Count::NoticeReads, reads), (Count::NoticeWrites, writes), (Count::NoticeRequests, requests)]);
    drop(logging);
    records.extend(new_records(&stream, &mut position));
    counts.insert(Count::RecordBytes, records.iter().map(item_growth_in_bytes).sum());

    // The engine deletes expired items by the real time, and at this time every receipt of 2024 has expired.
    assert!(system.engine.delete_expired() as f64 >= f64::from(payments));
    let expired = new_records(&stream, &mut position);
    route(stack, &expired, &mut counts).await;
    records.extend(expired);
    counts.insert(Count::StreamRecords, records.len() as f64);
    counts.insert(Count::Mails, mailer.mails().len() as f64);
    counts.insert(Count::LogBytes, log.number() as f64);
    counts
}

/// Returns the request that runs a batch for `date`.
fn request(date: &str) -> BatchRequest {
    BatchRequest::for_date(date.parse().unwrap())
}

/// Returns the time on `date` at which the run of a batch must end.
fn deadline(date: &str) -> DateTime<Utc> {
    six_o_clock(date) + TimeDelta::hours(1)
}

/// Returns the events of `records`, as the function `events` publishes them.
pub async fn publish(records: &[&Value]) -> Vec<Value> {
    let bus = RecordedEvents::default();
    let published = Publisher::new(bus.clone()).publish(&json!({ "Records": records })).await.unwrap();
    assert_eq!((published.unreadable, published.first_unpublished), (0, None));
    bus.events()
}

/// Publishes the events of the records that the filter passes, and counts the events that each rule matches. Returns
/// the messages that the rule `NoticesRule` sends to the queue of notices.
async fn route(stack: &Stack, records: &[Value], counts: &mut Counts) -> Vec<String> {
    let passed: Vec<&Value> = records.iter().filter(|record| stack.is_passed(record)).collect();
    let events = publish(&passed).await;
    let mut add = |count: Count, number: f64| *counts.entry(count).or_default() += number;
    add(Count::PassedRecords, passed.len() as f64);
    let mut notices = Vec::new();
    for event in events {
        let entry = json!({ "source": "dueday", "detail-type": event["type"], "resources": [NO_WEBHOOK_ENDPOINT], "detail": event });
        add(Count::Events, 1.0);
        if stack.is_routed("DeliveriesRule", &entry) {
            add(Count::DeliveryMessages, 1.0);
        }
        if stack.is_routed("NoticesRule", &entry) {
            add(Count::NoticeMessages, 1.0);
            notices.push(event.to_string());
        }
        if stack.is_routed("EventsKeptRule", &entry) {
            add(Count::ArchivedEvents, 1.0);
            add(Count::ArchivedBytes, (event.to_string().len().div_ceil(FIREHOSE_STEP) * FIREHOSE_STEP) as f64);
        }
    }
    notices
}

/// Returns the part of `counts` that a stack with only the core has: no events, and no mails about events. Only the reminder
/// is mailed.
pub fn counts_of_core(counts: &Counts) -> Counts {
    let of_core = counts.iter().filter_map(|(count, number)| match count {
        Count::NoticeWrites
        | Count::NoticeReads
        | Count::NoticeRequests
        | Count::PassedRecords
        | Count::Events
        | Count::DeliveryMessages
        | Count::NoticeMessages
        | Count::ArchivedEvents
        | Count::ArchivedBytes => None,
        Count::Mails => Some((Count::Mails, number.min(1.0))),
        count => Some((*count, *number)),
    });
    of_core.collect()
}

/// Returns the counts of one payment: the difference between forty payments and twenty payments, divided by twenty.
pub async fn count_per_payment(stack: &Stack, settings: &[(&str, &str)]) -> Counts {
    let (twenty, forty) = (count(stack, 20, settings).await, count(stack, 40, settings).await);
    forty.iter().map(|(count, number)| (*count, (number - twenty.get(count).copied().unwrap_or(0.0)) / 20.0)).collect()
}
