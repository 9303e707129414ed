//! Publishes events on an Amazon EventBridge bus.

use std::time::Duration;

use async_trait::async_trait;
use aws_errors::AwsRequestError;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::config::AsyncSleep as _;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, PutEventsResultEntry};
use aws_smithy_types::DateTime;
use backon::{BackoffBuilder as _, ExponentialBuilder};

use billing::{EventData, OperatorEvent};
use publishing::{BusEntry, EventBus, FailedEntry, StreamEvent};
use store::Table;

/// The field `Source` of all entries except heartbeats. EventBridge rules can match entries by this field.
const EVENT_SOURCE: &str = "dueday";
/// The field `Source` of heartbeats. It differs from [`EVENT_SOURCE`], so a merchant's rule for events does not match
/// heartbeats.
const HEARTBEAT_SOURCE: &str = "dueday.heartbeat";
/// The field `Resources` of an entry that was published while there was no webhook endpoint. The rule `DeliveriesRule`
/// in `template.yaml` sends no entry with this text to the queue of deliveries.
pub const NO_WEBHOOK_ENDPOINT: &str = "dueday:no-webhook-endpoint";
/// The field `Resources` of an entry that was published while there was a webhook endpoint. Each entry has this text or
/// [`NO_WEBHOOK_ENDPOINT`], so the rule never depends on an absent field.
pub const WEBHOOK_ENDPOINTS: &str = "dueday:webhook-endpoints";
/// The log message for each published event about a refund. A metric filter in `template.yaml` contains the same text, and an alarm
/// counts the lines.
pub const REFUND_PUBLISHED_MESSAGE: &str = "a refund was published";

/// The maximum number of entries in a request ("PutEvents" in the EventBridge API reference).
const MAX_REQUEST_ENTRIES: usize = 10;
/// The maximum size of a request in bytes. It is below the limit of EventBridge, because EventBridge also counts fields
/// that this module does not count ("Calculating PutEvents event entry size" in the EventBridge user guide).
const MAX_REQUEST_BYTES: usize = 250_000;
/// The maximum number of times that rejected entries are sent again, for example after throttling.
const MAX_RETRIES: usize = 4;
/// The delay before the first retry of rejected entries. The delay doubles with each further retry.
const MIN_DELAY: Duration = Duration::from_millis(100);

/// A bus of Amazon EventBridge, on which events are published. For each batch of entries, it reads from the table
/// whether there is a webhook endpoint.
#[derive(Clone, Debug)]
pub struct EventBridge {
    client: Client,
    bus: String,
    table: Table,
}

/// An entry in the format of a PutEvents request, with its index among the entries to publish.
struct PreparedEntry {
    index: usize,
    entry: PutEventsRequestEntry,
    /// The size of the entry, as counted for [`MAX_REQUEST_BYTES`].
    bytes: usize,
}

impl EventBridge {
    /// Creates a publisher on the bus with the name `bus`. `table` contains the webhook endpoints.
    pub fn new(client: Client, bus: String, table: Table) -> Self {
        Self { client, bus, table }
    }

    /// Reads from the table whether there is a webhook endpoint. Returns the field `Resources` of all entries of a
    /// batch. The read is strongly consistent and later than the changes in the batch, so it finds every endpoint that
    /// existed at the time of a change. If the table cannot be read, the entries are marked as if there was an
    /// endpoint, and the `deliver` function reads the endpoints again.
    async fn read_webhook_resource(&self) -> &'static str {
        match self.table.has_webhook_endpoints().await {
            Ok(true) => WEBHOOK_ENDPOINTS,
            Ok(false) => NO_WEBHOOK_ENDPOINT,
            Err(error) => {
                tracing::warn!(%error, error_type = "Table", "the webhook endpoints cannot be read: the events are sent to the queue of deliveries");
                WEBHOOK_ENDPOINTS
            }
        }
    }

    /// Converts `entry` into the format of a PutEvents request. `resource` is the field `Resources` of the entry.
    fn prepare_entry(&self, index: usize, entry: &BusEntry, resource: &str) -> PreparedEntry {
        let (source, event_type, at) = match &entry.event {
            StreamEvent::Event(event) => (EVENT_SOURCE, event.body.event_type().to_string(), event.time),
            StreamEvent::Operator(event) => {
                let source = match &event.body {
                    OperatorEvent::Heartbeat { .. } => HEARTBEAT_SOURCE,
                    OperatorEvent::RecordUnreadable { .. } => EVENT_SOURCE,
                };
                (source, event.body.to_string(), event.time)
            }
        };
        let detail = serde_json::to_string(&entry.event).expect("every event can be serialized as JSON");
        let bytes = detail.len() + event_type.len() + source.len() + resource.len();
        let entry = PutEventsRequestEntry::builder()
            .event_bus_name(&self.bus)
            .source(source)
            .resources(resource)
            .detail_type(event_type)
            .time(DateTime::from_millis(at.timestamp_millis()))
            .detail(detail);
        PreparedEntry { index, entry: entry.build(), bytes }
    }

    /// Sends all `prepared` entries in one request. Returns each failed entry with its reason.
    async fn put_events(&self, prepared: Vec<PreparedEntry>) -> Vec<(PreparedEntry, String)> {
        let entries = prepared.iter().map(|prepared| prepared.entry.clone()).collect();
        match self.client.put_events().set_entries(Some(entries)).send().await {
            Ok(response) if response.entries().len() == prepared.len() => {
                let reason = |result: &PutEventsResultEntry| {
                    let code = result.error_code()?;
                    Some(AwsRequestError::of_code(code, result.error_message()).to_string())
                };
                let results = prepared.into_iter().zip(response.entries());
                results.filter_map(|(prepared, result)| Some((prepared, reason(result)?))).collect()
            }
            Ok(_) => mark_all_entries_failed(prepared, "the response has a wrong number of entries"),
            Err(error) => mark_all_entries_failed(prepared, &AwsRequestError::new(&error).to_string()),
        }
    }
}

/// Logs each published refund of `entries`. `failed` are the entries that were not published.
fn log_published_refunds(entries: &[BusEntry], failed: &[FailedEntry]) {
    for (index, entry) in entries.iter().enumerate() {
        let StreamEvent::Event(event) = &entry.event else { continue };
        if matches!(event.body, EventData::PaymentRefunded(_)) && failed.iter().all(|failed| failed.index != index) {
            tracing::info!(event = %event.id, "{REFUND_PUBLISHED_MESSAGE}");
        }
    }
}

/// Returns all entries in `prepared` as failed entries with the reason `reason`.
fn mark_all_entries_failed(prepared: Vec<PreparedEntry>, reason: &str) -> Vec<(PreparedEntry, String)> {
    prepared.into_iter().map(|prepared| (prepared, reason.to_owned())).collect()
}

/// Splits the entries into several requests, each within the limits of EventBridge. The order of the entries is
/// unchanged.
fn split_entries_into_requests(all: Vec<PreparedEntry>) -> Vec<Vec<PreparedEntry>> {
    let mut requests: Vec<Vec<PreparedEntry>> = Vec::new();
    let mut bytes = 0;
    for prepared in all {
        bytes += prepared.bytes;
        match requests.last_mut() {
            Some(request) if request.len() < MAX_REQUEST_ENTRIES && bytes <= MAX_REQUEST_BYTES => {
                request.push(prepared)
            }
            _ => {
                bytes = prepared.bytes;
                requests.push(vec![prepared]);
            }
        }
    }
    requests
}

#[async_trait]
impl EventBus for EventBridge {
    async fn publish_entries(&self, entries: &[BusEntry]) -> Vec<FailedEntry> {
        let resource = self.read_webhook_resource().await;
        let mut remaining: Vec<_> =
            entries.iter().enumerate().map(|(index, entry)| self.prepare_entry(index, entry, resource)).collect();
        let delays = ExponentialBuilder::new().with_min_delay(MIN_DELAY).with_max_times(MAX_RETRIES).with_jitter();
        let mut delays = delays.build();
        loop {
            let mut failed = Vec::new();
            for request in split_entries_into_requests(std::mem::take(&mut remaining)) {
                failed.extend(self.put_events(request).await);
            }
            let Some(delay) = delays.next().filter(|_| !failed.is_empty()) else {
                let failed = failed.into_iter().map(|(prepared, reason)| FailedEntry { index: prepared.index, reason });
                let failed: Vec<_> = failed.collect();
                log_published_refunds(entries, &failed);
                return failed;
            };
            if let Some(sleep) = self.client.config().sleep_impl() {
                sleep.sleep(delay).await;
            }
            remaining = failed.into_iter().map(|(prepared, _)| prepared).collect();
        }
    }
}
