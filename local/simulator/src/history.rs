//! The history of the table: each item as it was before and after each write, told to the oracle in the order in which
//! the writes took effect.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clock::{Clock as _, SimulatedClock};
use emulator::{Engine, Witness};
use serde_json::{Value, json};

use crate::change::{Change, ItemKey};
use crate::json::flag;
use crate::lagging_index::LaggingIndex;
use crate::listener::Listener;
use crate::oracle::Oracle;
use crate::schedule::{Schedule, Turns};

/// The history of one table.
pub struct History {
    engine: Engine,
    clock: Arc<SimulatedClock>,
    schedule: Schedule,
    pub oracle: Arc<Mutex<Oracle>>,
    index: Mutex<LaggingIndex>,
    items: Mutex<BTreeMap<ItemKey, Value>>,
    listener: Mutex<Listener>,
}

impl History {
    pub fn new(
        engine: Engine,
        clock: Arc<SimulatedClock>,
        schedule: Schedule,
        oracle: Arc<Mutex<Oracle>>,
        seed: u64,
    ) -> Self {
        let index = Mutex::new(LaggingIndex::new(seed));
        Self { engine, clock, schedule, oracle, index, items: Mutex::default(), listener: Mutex::default() }
    }

    /// Whether the indexes show everything at once.
    pub fn be_calm(&self, is_calm: bool) {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).be_calm(is_calm);
    }

    /// Adds the table as it is now to the trace.
    pub fn note_all(&self) {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        items.iter().for_each(|(key, item)| self.schedule.note(&format!("{key:?} {item}")));
    }

    /// In what the events of all that was written differ from the table as it is now.
    pub fn contradictions(&self) -> Vec<String> {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        self.listener().contradictions(items.values())
    }

    /// How many events there were.
    pub fn events(&self) -> usize {
        self.listener().heard()
    }

    fn listener(&self) -> MutexGuard<'_, Listener> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the write `request` has made of each item that it named.
    fn changes(&self, operation: &str, request: &Value) -> Vec<Change> {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = Vec::new();
        for (table, key) in written(operation, request) {
            let Some(stored) = stored_key(&key) else { continue };
            let answer = self.engine.ask("GetItem", &json!({"TableName": table, "Key": key, "ConsistentRead": true}));
            let after = answer.ok().and_then(|answer| answer.get("Item").cloned());
            let before = match after.clone() {
                Some(after) => items.insert(stored.clone(), after),
                None => items.remove(&stored),
            };
            changes.push(Change { key: stored, before, after });
        }
        changes
    }
}

/// What one process does, as the history sees it.
pub struct Seen {
    pub history: Arc<History>,
    pub turns: Arc<Turns>,
}

impl Witness for Seen {
    fn instead(&self, operation: &str, request: &Value) -> Option<Value> {
        if operation != "Query" || request.get("IndexName").is_none() {
            return None;
        }
        let now = self.history.clock.now();
        self.history.index.lock().unwrap_or_else(PoisonError::into_inner).answer(now, request)
    }

    fn saw(&self, operation: &str, request: &Value, answer: Result<&str, &str>) {
        let (history, actor) = (&self.history, self.turns.actor());
        // The engine names attributes in any order.
        let answered: Value = answer.map_or_else(serde_json::from_str, serde_json::from_str).unwrap_or_default();
        if actor != 0 {
            let mut noted = request.clone();
            // The SDK makes it of randomness that is not ours.
            if let Some(fields) = noted.as_object_mut() {
                fields.remove("ClientRequestToken");
            }
            history.schedule.note(&format!("{actor} {operation} {noted} {answered}"));
        }
        if operation == "GetItem" && request["Key"]["PK"]["S"] == "CTL#settings" {
            let is_charging = answered.get("Item").and_then(|item| flag(item, "Charging"));
            let mut oracle = history.oracle.lock().unwrap_or_else(PoisonError::into_inner);
            oracle.read_settings(actor, is_charging.unwrap_or(true));
        }
        if operation == "Query" && request.get("IndexName").is_some() {
            let rows = answered["Items"].as_array().into_iter().flatten().filter_map(stored_key);
            let mut oracle = history.oracle.lock().unwrap_or_else(PoisonError::into_inner);
            oracle.shown(actor, &rows.collect::<Vec<_>>());
        }
        let changes = if answer.is_ok() { history.changes(operation, request) } else { Vec::new() };
        let now = history.clock.now();
        for change in &changes {
            let mut index = history.index.lock().unwrap_or_else(PoisonError::into_inner);
            index.write(now, &change.key, change.after.as_ref());
            history.listener().hear(now, change);
        }
        history.oracle.lock().unwrap_or_else(PoisonError::into_inner).saw(actor, now, &changes);
    }
}

/// The table and the keys of the items that a request writes.
fn written(operation: &str, request: &Value) -> Vec<(Value, Value)> {
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

fn stored_key(key: &Value) -> Option<ItemKey> {
    let part = |name: &str| crate::json::text(key, name).map(str::to_owned);
    Some((part("PK")?, part("SK")?))
}
