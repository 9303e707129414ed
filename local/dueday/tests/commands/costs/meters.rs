//! Counters for the measured workload. They count the capacity units of the workload's requests, its events, and the
//! bytes of its log lines.

use std::io::Write;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use emulator::{Engine, RequestObserver};
use publishing::{BusEntry, EventBus, FailedEntry};
use serde_json::Value;

/// Counts the requests to the engine, and their read units and write units.
pub struct Meter {
    engine: Engine,
    /// The read units, the write units and the requests.
    units: Mutex<[f64; 3]>,
}

impl Meter {
    /// Creates a meter that executes each request on `engine` and counts its capacity units.
    pub fn new(engine: Engine) -> Self {
        Self { engine, units: Mutex::default() }
    }

    /// Returns the read units, the write units and the requests since the last call.
    pub fn take(&self) -> [f64; 3] {
        std::mem::take(&mut *self.units.lock().unwrap())
    }
}

impl RequestObserver for Meter {
    /// Executes the request with the option `ReturnConsumedCapacity`, and counts its capacity units. If the engine
    /// refuses the request, this method returns `None`. Then the connection executes the request again, and the engine
    /// refuses it again.
    fn replacement_response(&self, operation: &str, request: &Value) -> Option<Value> {
        let mut request = request.clone();
        request["ReturnConsumedCapacity"] = "TOTAL".into();
        let response = self.engine.execute(operation, &request).ok()?;
        let consumed = match &response["ConsumedCapacity"] {
            Value::Array(tables) => tables.clone(),
            one => vec![one.clone()],
        };
        let units: f64 = consumed.iter().filter_map(|table| table["CapacityUnits"].as_f64()).sum();
        let is_read = matches!(operation, "GetItem" | "Query" | "Scan" | "BatchGetItem" | "TransactGetItems");
        let mut counted = self.units.lock().unwrap();
        counted[usize::from(!is_read)] += units;
        counted[2] += 1.0;
        Some(response)
    }

    fn observe_response(&self, _: &str, _: &Value, _: Result<&str, &str>) {}
}

/// A fake of the event bus that stores the published events in memory.
#[derive(Clone, Default)]
pub struct RecordedEvents(Arc<Mutex<Vec<BusEntry>>>);

impl RecordedEvents {
    /// Returns all published events as JSON.
    pub fn events(&self) -> Vec<Value> {
        self.0.lock().unwrap().iter().map(|entry| serde_json::to_value(&entry.event).unwrap()).collect()
    }
}

#[async_trait]
impl EventBus for RecordedEvents {
    async fn publish_entries(&self, entries: &[BusEntry]) -> Vec<FailedEntry> {
        self.0.lock().unwrap().extend(entries.iter().cloned());
        Vec::new()
    }
}

/// A writer that counts the bytes of log lines.
#[derive(Clone, Default)]
pub struct LogBytes(Arc<Mutex<usize>>);

impl LogBytes {
    /// Returns the number of bytes so far.
    pub fn number(&self) -> usize {
        *self.0.lock().unwrap()
    }
}

impl Write for LogBytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        *self.0.lock().unwrap() += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
