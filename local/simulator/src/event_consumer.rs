//! An event consumer, as a merchant would write it: the consumer learns about subscriptions and receipts only from
//! events. The publisher creates the events from stream records of each change of the table, as in production.

use std::collections::{BTreeMap, HashSet};
use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use publishing::{BusEntry, EventBus, FailedEntry, Publisher};
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::change::ItemChange;

/// The ARN of the stream of the simulated table.
const STREAM: &str = "arn:aws:dynamodb:eu-west-1:000000000000:table/simulated/stream/2027-01-01T00:00:00.000";

/// The public fields of a subscription in an event, each with the stored attribute whose value the field must have.
/// This list is independent of the code that creates events.
const PUBLIC_FIELDS: [(&str, &str); 18] = [
    ("external_id", "ExternalId"),
    ("sku", "SKU"),
    ("product_name", "ProductName"),
    ("status", "Status"),
    ("payment_day", "PaymentDay"),
    ("amount", "PaymentAmount"),
    ("currency", "Currency"),
    ("waiting_terms", "WaitingTerms"),
    ("due_on", "DueDate"),
    ("next_payment_on", "NextPaymentDate"),
    ("next_reminder_on", "NextReminderDate"),
    ("failed_attempts", "FailedAttempts"),
    ("cancel_from", "CancelPeriod"),
    ("disputed_at", "DisputedDate"),
    ("last_payment_at", "LastPaymentDate"),
    ("last_reminder_at", "LastReminderDate"),
    ("created_at", "CreatedDate"),
    ("version", "Version"),
];

/// A consumer that records all events, in the order of the changes that caused them.
pub struct EventConsumer {
    publisher: Publisher<ReceivedEvents>,
    received: ReceivedEvents,
    /// The number of published stream records.
    records: u64,
    events: Vec<Value>,
    /// The subscriptions and receipts that a consumer computes from all events so far.
    state: PublishedState,
    /// Changes that could not be published, and states that differ from the stored items.
    errors: Vec<String>,
}

/// An event bus in memory that collects the published events until the consumer removes them.
#[derive(Clone, Default)]
struct ReceivedEvents(Arc<Mutex<Vec<Value>>>);

#[async_trait]
impl EventBus for ReceivedEvents {
    async fn publish_entries(&self, entries: &[BusEntry]) -> Vec<FailedEntry> {
        let events = entries.iter().map(|entry| serde_json::to_value(&entry.event).unwrap_or_default());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(events);
        Vec::new()
    }
}

/// The state that a consumer computes from events: the public fields of each subscription, and the amount (in minor
/// units) and currency of each receipt.
#[derive(Clone, PartialEq, Debug, Default)]
struct PublishedState {
    /// The ids of the events that were processed. An event with one of these ids is ignored.
    seen: HashSet<String>,
    subscriptions: BTreeMap<String, Map<String, Value>>,
    receipts: BTreeMap<String, Value>,
    /// The names of the receipts that expired. A payment event that is delivered after the expiry does not create the
    /// receipt again.
    expired: HashSet<String>,
}

impl Default for EventConsumer {
    fn default() -> Self {
        let received = ReceivedEvents::default();
        let publisher = Publisher::new(received.clone());
        Self {
            publisher,
            received,
            records: 0,
            events: Vec::new(),
            state: PublishedState::default(),
            errors: Vec::new(),
        }
    }
}

impl EventConsumer {
    /// Publishes and records the events of one changed item; the write took effect at `now`. Compares the state after
    /// these events with the item.
    pub fn record_change(&mut self, now: DateTime<Utc>, change: &ItemChange) {
        self.records += 1;
        let record = json!({
            "awsRegion": "eu-west-1",
            "eventID": self.records.to_string(),
            "eventName": stream_event_name(change),
            "eventSourceARN": STREAM,
            "dynamodb": {
                "SequenceNumber": self.records.to_string(),
                "SizeBytes": 0,
                "ApproximateCreationDateTime": now.timestamp_millis() as f64 / 1_000.0,
                "OldImage": change.before,
                "NewImage": change.after,
            },
        });
        // The bus is in memory, so the publisher never waits.
        match self.publisher.publish(&json!({"Records": [record]})).now_or_never() {
            Some(Ok(published)) if published.unreadable == 0 && published.first_unpublished.is_none() => {}
            other => self.errors.push(format!("the change of {:?} was not published: {other:?}", change.key)),
        }
        let events = take(&mut *self.received.0.lock().unwrap_or_else(PoisonError::into_inner));
        let is_dropped = is_dropped_by_stream_filter(&change.key.1, change.before.as_ref(), change.after.as_ref());
        if is_dropped && events.iter().any(|event| event["type"] != "receipt.expired") {
            self.errors.push(format!("the stream's filter drops the change of {:?}, which has events", change.key));
        }
        events.iter().for_each(|event| self.state.apply_event(event));
        self.events.extend(events);
        if let Some((name, item)) = change.after.as_ref().and_then(subscription_of_item)
            && let Some(difference) = self.state.find_difference(&name, &item)
        {
            self.errors.push(difference);
        }
    }

    /// Returns the number of recorded events.
    pub fn event_count(&self) -> usize {
        self.events.len()
    }

    /// Returns all recorded events.
    pub fn events(&self) -> &[Value] {
        &self.events
    }

    /// Returns the differences between the stored `items` and the state that a consumer computes from all events, and
    /// the contradictions between events.
    pub fn find_contradictions<'a>(&self, items: impl Iterator<Item = &'a Value>) -> Vec<String> {
        let mut errors = self.errors.clone();
        let mut ids = HashSet::new();
        let twice = self.events.iter().filter(|event| !ids.insert(string_or_empty(&event["id"])));
        errors.extend(twice.map(|event| format!("two events have the id {}", event["id"])));
        let stored = items.collect::<Vec<_>>();
        let subscriptions: Vec<_> = stored.iter().filter_map(|item| subscription_of_item(item)).collect();
        errors.extend(subscriptions.iter().filter_map(|(name, item)| self.state.find_difference(name, item)));
        let receipts: BTreeMap<_, _> = stored.iter().filter_map(|item| receipt_of_item(item)).collect();
        if self.state.subscriptions.len() != subscriptions.len() || self.state.receipts != receipts {
            errors.push("the subscriptions or receipts that follow from all events are not the stored ones".to_owned());
        }
        if self.state_after_late_delivery() != self.state {
            errors.push("late, repeated and re-ordered events give a different state".to_owned());
        }
        errors
    }

    /// Returns the state after all events were delivered in a random order, and every third event twice.
    fn state_after_late_delivery(&self) -> PublishedState {
        let mut random = ChaCha8Rng::seed_from_u64(self.records);
        let mut late: Vec<&Value> = self.events.iter().collect();
        let repeated: Vec<&Value> = late.iter().copied().filter(|_| random.random_ratio(1, 3)).collect();
        late.extend(repeated);
        late.shuffle(&mut random);
        let mut state = PublishedState::default();
        late.into_iter().for_each(|event| state.apply_event(event));
        state
    }
}

/// Returns whether the stream filter on AWS drops the change of an item of an account. The item has this sort key. The
/// dropped changes must have no events, except for the expiry of a receipt. The filter drops these changes:
/// - A change that opens a payment attempt or claims a reminder, if the item had neither an open attempt nor a claimed
///   reminder before.
/// - The deletion of an item that is not the account itself.
pub fn is_dropped_by_stream_filter(sort_key: &str, before: Option<&Value>, after: Option<&Value>) -> bool {
    let is_claimed = |item: &Value| item.get("AttemptNo").is_some() || item.get("ReminderBy").is_some();
    match (before, after) {
        (Some(before), Some(after)) => !is_claimed(before) && is_claimed(after),
        (Some(_), None) => !sort_key.starts_with("ACC#"),
        (None, _) => false,
    }
}

impl PublishedState {
    /// Processes `event` as docs/events.md describes: ignores repeated ids and lower versions.
    fn apply_event(&mut self, event: &Value) {
        if !self.seen.insert(string_or_empty(&event["id"])) {
            return;
        }
        let (event_type, data) = (string_or_empty(&event["type"]), &event["data"]);
        let receipt = || format!("{} {}", string_or_empty(&event["subject"]), string_or_empty(&data["receipt"]));
        match event_type.as_str() {
            "payment.succeeded" if !self.expired.contains(&receipt()) => {
                self.receipts.insert(receipt(), json!([data["amount"], data["currency"]]));
            }
            "receipt.expired" => {
                self.receipts.remove(&receipt());
                self.expired.insert(receipt());
            }
            other if other.starts_with("subscription.") => {
                let Some(data) = data.as_object() else { return };
                let name = format!("{} {}", string_or_empty(&event["subject"]), string_or_empty(&data["subscription"]));
                let known = self.subscriptions.entry(name).or_default();
                if known.get("version").and_then(Value::as_u64) < data.get("version").and_then(Value::as_u64) {
                    known.clone_from(data);
                }
            }
            _ => {}
        }
    }

    /// Describes the first public field of the subscription `name` that differs from the stored `item`; `None` if all
    /// fields are equal. The version in the item may be higher than the published version, because not every write
    /// changes a public field.
    fn find_difference(&self, name: &str, item: &Value) -> Option<String> {
        let Some(known) = self.subscriptions.get(name) else { return Some(format!("no event created {name}")) };
        PUBLIC_FIELDS.iter().find_map(|(field, attribute)| {
            let (published, stored) = (&known[*field], plain_value(&item[*attribute]));
            let is_equal = match *field {
                "version" => published.as_i64() <= stored.as_i64(),
                "waiting_terms" => *published == convert_waiting_terms(&stored),
                _ if field.ends_with("_at") => parse_instant(published) == parse_instant(&stored),
                _ => *published == stored,
            };
            (!is_equal).then(|| format!("{name}: {field} is {published} in events, and {stored} in the table"))
        })
    }
}

/// Returns the value of `eventName` in the stream record of `change`: `INSERT`, `MODIFY` or `REMOVE`.
fn stream_event_name(change: &ItemChange) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "INSERT",
        (Some(_), Some(_)) => "MODIFY",
        (Some(_), None) => "REMOVE",
    }
}

/// Returns the name and the item of a subscription; `None` for other items.
fn subscription_of_item(item: &Value) -> Option<(String, Value)> {
    let account = item["PK"]["S"].as_str()?.strip_prefix("ACC#")?;
    let (id, _) = item["SK"]["S"].as_str()?.strip_prefix("SUB#")?.split_once("#SKU#")?;
    Some((format!("{account} {id}"), item.clone()))
}

/// Returns the name and the amount of a receipt; `None` for other items.
fn receipt_of_item(item: &Value) -> Option<(String, Value)> {
    let account = item["PK"]["S"].as_str()?.strip_prefix("ACC#")?;
    let (due_on, rest) = item["SK"]["S"].as_str()?.strip_prefix("REC#")?.split_once("#SKU#")?;
    let (sku, subscription) = rest.split_once("#SUB#")?;
    let amount = json!([plain_value(&item["ProcessedAmount"]), plain_value(&item["Currency"])]);
    Some((format!("{account} {due_on}.{subscription}.{sku}"), amount))
}

/// Converts the stored list of future prices and payment days of a subscription to the list that its events contain.
fn convert_waiting_terms(stored: &Value) -> Value {
    let terms = stored.as_array().into_iter().flatten();
    let public = |terms: &Value| json!({"from": terms["From"], "payment_day": terms["PaymentDay"], "amount": terms["PaymentAmount"]});
    terms.map(public).collect()
}

/// Returns the value of an attribute, without DynamoDB's type descriptors; null if the item has no such attribute.
fn plain_value(attribute: &Value) -> Value {
    let Some((kind, value)) = attribute.as_object().and_then(|object| object.iter().next()) else { return Value::Null };
    match (kind.as_str(), value) {
        ("N", Value::String(number)) => serde_json::from_str(number).unwrap_or_default(),
        ("L", Value::Array(list)) => list.iter().map(plain_value).collect(),
        ("M", Value::Object(map)) => map.iter().map(|(name, value)| (name.clone(), plain_value(value))).collect(),
        ("NULL", _) => Value::Null,
        (_, value) => value.clone(),
    }
}

/// Returns the instant in a field or an attribute; `None` for null.
fn parse_instant(value: &Value) -> Option<DateTime<Utc>> {
    value.as_str().and_then(|text| text.parse().ok())
}

/// Returns the text of a JSON string; an empty text for any other value.
fn string_or_empty(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
