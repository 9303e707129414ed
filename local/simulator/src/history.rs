//! Records each write to the table as the item before and after the write. Reports the writes to the oracle (which
//! checks each write), the lagging indexes (which show each write with a delay) and the event consumer, in the order in
//! which the writes took effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use audit::InvariantChecker;
use clock::{Clock as _, SimulatedClock};
use emulator::{Engine, RequestObserver};
use serde_json::{Value, json};

use crate::change::{ItemChange, ItemKey};
use crate::event_consumer::EventConsumer;
use crate::item_audit::audit_items;
use crate::json::read_bool_attribute;
use crate::lagging_index::LaggingIndex;
use crate::oracle::Oracle;
use crate::schedule::{CallSchedule, ProcessSchedule};

/// The published events of a simulation, and the items of its table at the end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SimulatedRecords {
    /// The events as JSON, in the order of their publication.
    pub events: Vec<Value>,
    /// The items, in the JSON format of DynamoDB's API.
    pub items: Vec<Value>,
}

/// Records all writes to one table, and reports each write to the oracle, the lagging indexes and the event consumer.
pub struct TableHistory {
    engine: Engine,
    clock: Arc<SimulatedClock>,
    schedule: CallSchedule,
    pub oracle: Arc<Mutex<Oracle>>,
    index: Mutex<LaggingIndex>,
    /// The current items of the table, by key.
    items: Mutex<BTreeMap<ItemKey, Value>>,
    event_consumer: Mutex<EventConsumer>,
    /// The id that the engine has given to the table. Empty until a process first reads the description of the table.
    dynamodb_id: OnceLock<String>,
}

impl TableHistory {
    /// Creates an empty history. `seed` decides the delays of the indexes.
    pub fn new(
        engine: Engine,
        clock: Arc<SimulatedClock>,
        schedule: CallSchedule,
        oracle: Arc<Mutex<Oracle>>,
        seed: u64,
    ) -> Self {
        let index = Mutex::new(LaggingIndex::new(seed));
        let (items, event_consumer) = (Mutex::default(), Mutex::default());
        Self { engine, clock, schedule, oracle, index, items, event_consumer, dynamodb_id: OnceLock::new() }
    }

    /// Sets whether every write is visible in the indexes immediately.
    pub fn set_index_consistent(&self, is_consistent: bool) {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).set_consistent(is_consistent);
    }

    /// Adds all current items to the trace of the simulation.
    pub fn add_table_to_trace(&self) {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        items.iter().for_each(|(key, item)| self.add_to_trace(&format!("{key:?} {item}")));
    }

    /// Adds `line` to the trace of the simulation, without the id of the table, which the engine chooses at random.
    fn add_to_trace(&self, line: &str) {
        match self.dynamodb_id.get() {
            Some(id) => self.schedule.add_to_trace(&line.replace(id, "TABLE")),
            None => self.schedule.add_to_trace(line),
        }
    }

    /// Returns the differences between the current items and the state that a consumer computes from all events, and
    /// the contradictions between events.
    pub fn find_contradictions(&self) -> Vec<String> {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        self.event_consumer().find_contradictions(items.values())
    }

    /// Returns the ids of all accounts.
    pub fn account_ids(&self) -> BTreeSet<String> {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        items.keys().filter_map(|(pk, _)| pk.strip_prefix("ACC#").map(str::to_owned)).collect()
    }

    /// Returns the current items of `account`.
    pub fn items_of_account(&self, account: &str) -> Vec<Value> {
        let (items, pk) = (self.items.lock().unwrap_or_else(PoisonError::into_inner), format!("ACC#{account}"));
        items
            .range((pk.clone(), String::new())..)
            .take_while(|(key, _)| key.0 == pk)
            .map(|(_, item)| item.clone())
            .collect()
    }

    /// Returns the violations that `checker` finds in the current items of `account`.
    pub fn audit_account(&self, account: &str, checker: InvariantChecker) -> Vec<String> {
        let settings = ("CTL#settings".to_owned(), "CTL#settings".to_owned());
        let settings = self.items.lock().unwrap_or_else(PoisonError::into_inner).get(&settings).cloned();
        audit_items(checker, self.items_of_account(account).iter().chain(&settings))
    }

    /// Returns the violations that `checker` finds in the current items of all accounts that were not corrupted.
    pub fn audit_intact_accounts(&self, checker: InvariantChecker, is_corrupted: impl Fn(&str) -> bool) -> Vec<String> {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let intact = |(key, _): &(&ItemKey, &Value)| !key.0.strip_prefix("ACC#").is_some_and(&is_corrupted);
        audit_items(checker, items.iter().filter(intact).map(|(_, item)| item))
    }

    /// Replaces an item of `table` by the corrupted `item`. The oracle and the event consumer get no report of this
    /// write. Returns false if the table refuses the item.
    pub fn write_corrupted_item(&self, table: &str, item: &Value) -> bool {
        let Some(key) = item_key(item) else { return false };
        if self.engine.execute("PutItem", &json!({"TableName": table, "Item": item})).is_err() {
            return false;
        }
        self.index.lock().unwrap_or_else(PoisonError::into_inner).record_write(self.clock.now(), &key, Some(item));
        self.items.lock().unwrap_or_else(PoisonError::into_inner).insert(key, item.clone());
        true
    }

    /// Writes `item` to `table`, as an operator does between two days. The oracle gets no report of this write.
    ///
    /// # Errors
    /// If the table refuses the item.
    pub fn write_item(&self, table: &str, item: &Value) -> Result<(), String> {
        let key = item_key(item).ok_or("the item has no key")?;
        self.engine.execute("PutItem", &json!({"TableName": table, "Item": item}))?;
        let now = self.clock.now();
        self.index.lock().unwrap_or_else(PoisonError::into_inner).record_write(now, &key, Some(item));
        let before = self.items.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), item.clone());
        self.event_consumer().record_change(now, &ItemChange { key, before, after: Some(item.clone()) });
        Ok(())
    }

    /// Returns all events, and the items that the table contains now.
    pub fn records(&self) -> SimulatedRecords {
        let mut items: Vec<Value> =
            self.items.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        // The engine chooses the id of the table at random. A constant replaces it, so that equal seeds give equal
        // records.
        items.iter_mut().filter_map(|item| item.get_mut("DynamodbId")).for_each(|id| *id = json!({"S": "TABLE"}));
        SimulatedRecords { events: self.event_consumer().events().to_vec(), items }
    }

    /// Returns the number of events that were published for all recorded changes.
    pub fn event_count(&self) -> usize {
        self.event_consumer().event_count()
    }

    fn event_consumer(&self) -> MutexGuard<'_, EventConsumer> {
        self.event_consumer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads each item that the completed `request` has written, and updates the recorded items. Returns the change of
    /// each written item.
    fn record_changes(&self, operation: &str, request: &Value) -> Vec<ItemChange> {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = Vec::new();
        for (table, key) in written_keys(operation, request) {
            let Some(stored) = item_key(&key) else { continue };
            let response =
                self.engine.execute("GetItem", &json!({"TableName": table, "Key": key, "ConsistentRead": true}));
            let after = response.ok().and_then(|response| response.get("Item").cloned());
            let before = match after.clone() {
                Some(after) => items.insert(stored.clone(), after),
                None => items.remove(&stored),
            };
            changes.push(ItemChange { key: stored, before, after });
        }
        changes
    }
}

/// Observes the table requests of one process, and reports them to the history.
pub struct ProcessObserver {
    pub history: Arc<TableHistory>,
    pub process_schedule: Arc<ProcessSchedule>,
}

impl RequestObserver for ProcessObserver {
    fn replacement_response(&self, operation: &str, request: &Value) -> Option<Value> {
        if operation != "Query" || request.get("IndexName").is_none() {
            return None;
        }
        let now = self.history.clock.now();
        self.history.index.lock().unwrap_or_else(PoisonError::into_inner).query(now, request)
    }

    fn observe_response(&self, operation: &str, request: &Value, response: Result<&str, &str>) {
        let (history, actor) = (&self.history, self.process_schedule.calling_actor());
        // The engine returns the attributes of an item in any order. The response is parsed, because parsed responses
        // with equal attributes have equal traces.
        let body: Value = response.map_or_else(serde_json::from_str, serde_json::from_str).unwrap_or_default();
        if let Some(id) = body["Table"]["TableId"].as_str() {
            history.dynamodb_id.get_or_init(|| id.to_owned());
        }
        if actor != 0 {
            let mut traced = request.clone();
            // The SDK creates this token at random and not from the seed of the simulation. The token is removed,
            // because the traces of equal seeds must be equal.
            if let Some(fields) = traced.as_object_mut() {
                fields.remove("ClientRequestToken");
            }
            // The response to `DescribeTable` contains the real time at which the engine created the table, so the
            // trace does not contain this response.
            let shown = if operation == "DescribeTable" { &Value::Null } else { &body };
            history.add_to_trace(&format!("{actor} {operation} {traced} {shown}"));
        }
        if operation == "GetItem" && request["Key"]["PK"]["S"] == "CTL#settings" {
            let is_charging = body.get("Item").and_then(|item| read_bool_attribute(item, "Charging"));
            let ceiling = body["Item"]["PaymentLimits"]["M"]["max-charges"]["S"].as_str();
            let ceiling = ceiling.and_then(|ceiling| ceiling.parse().ok());
            let mut oracle = history.oracle.lock().unwrap_or_else(PoisonError::into_inner);
            oracle.record_settings_read_by_actor(actor, is_charging.unwrap_or(true), ceiling);
        }
        if operation == "Query" && request.get("IndexName").is_some() {
            let rows = body["Items"].as_array().into_iter().flatten().filter_map(item_key);
            let mut oracle = history.oracle.lock().unwrap_or_else(PoisonError::into_inner);
            oracle.record_index_rows_read_by_actor(actor, &rows.collect::<Vec<_>>());
        }
        let changes = if response.is_ok() { history.record_changes(operation, request) } else { Vec::new() };
        let now = history.clock.now();
        for change in &changes {
            let mut index = history.index.lock().unwrap_or_else(PoisonError::into_inner);
            index.record_write(now, &change.key, change.after.as_ref());
            history.event_consumer().record_change(now, change);
        }
        history.oracle.lock().unwrap_or_else(PoisonError::into_inner).record_table_request(actor, now, &changes);
    }
}

/// Returns the table and the key of each item that a request writes.
fn written_keys(operation: &str, request: &Value) -> Vec<(Value, Value)> {
    let one = |request: &Value| {
        let key = match (request.get("Key"), request.get("Item")) {
            (Some(key), _) => key.clone(),
            (None, Some(item)) => json!({"PK": item.get("PK"), "SK": item.get("SK")}),
            (None, None) => return None,
        };
        Some((request.get("TableName")?.clone(), key))
    };
    match operation {
        "PutItem" | "UpdateItem" | "DeleteItem" => one(request).into_iter().collect(),
        "TransactWriteItems" => {
            let writes = request["TransactItems"].as_array().into_iter().flatten();
            writes
                .flat_map(|write| ["Put", "Update", "Delete"].map(|kind| write.get(kind).and_then(one)))
                .flatten()
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the `PK` and the `SK` of an item or a key; `None` if one of these attributes is missing.
fn item_key(key: &Value) -> Option<ItemKey> {
    let part = |name: &str| crate::json::read_text_attribute(key, name).map(str::to_owned);
    Some((part("PK")?, part("SK")?))
}
