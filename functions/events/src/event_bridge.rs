//! The bus on AWS.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::config::AsyncSleep as _;
use aws_sdk_eventbridge::error::DisplayErrorContext;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_smithy_types::DateTime;
use backon::{BackoffBuilder as _, ExponentialBuilder};

use delivery::{Bus, Entry, Refused, StreamEvent};

/// What rules know all of them by.
const SOURCE: &str = "dueday";
/// As many entries as a request may have ("PutEvents" in the EventBridge API reference).
const MOST_ENTRIES: usize = 10;
/// As large as a request may be, in bytes, with something left for what is counted beside the details ("Calculating
/// PutEvents event entry size" in the EventBridge user guide).
const MOST_BYTES: usize = 250_000;
/// What is refused, as for too high a rate, is put again so many times.
const MAX_RETRIES: usize = 4;
const MIN_DELAY: Duration = Duration::from_millis(100);

/// An EventBridge bus.
#[derive(Clone, Debug)]
pub struct EventBridge {
    client: Client,
    bus: String,
}

/// An entry, with its place among those that are to be put.
struct Ready {
    index: usize,
    entry: PutEventsRequestEntry,
    bytes: usize,
}

impl EventBridge {
    /// The bus that is called `bus`.
    pub fn new(client: Client, bus: String) -> Self {
        Self { client, bus }
    }

    fn ready(&self, index: usize, entry: &Entry) -> Ready {
        let (event_type, at) = match &entry.event {
            StreamEvent::Event(event) => (event.body.event_type().to_string(), event.time),
            StreamEvent::Unreadable(event) => ("record.unreadable".to_owned(), event.time),
        };
        let detail = serde_json::to_string(&entry.event).expect("events are representable");
        let bytes = detail.len() + event_type.len() + SOURCE.len();
        let entry = PutEventsRequestEntry::builder()
            .event_bus_name(&self.bus)
            .source(SOURCE)
            .detail_type(event_type)
            .time(DateTime::from_millis(at.timestamp_millis()))
            .detail(detail);
        Ready { index, entry: entry.build(), bytes }
    }

    /// Puts as many as one request takes, and answers those that were refused with the reason.
    async fn request(&self, all: Vec<Ready>) -> Vec<(Ready, String)> {
        let entries = all.iter().map(|ready| ready.entry.clone()).collect();
        match self.client.put_events().set_entries(Some(entries)).send().await {
            Ok(answer) if answer.entries().len() == all.len() => {
                let answered = all.into_iter().zip(answer.entries());
                answered
                    .filter_map(|(ready, result)| result.error_code().map(|code| (ready, code.to_owned())))
                    .collect()
            }
            Ok(_) => refuse(all, "the answer is of another number of entries"),
            Err(error) => refuse(all, &DisplayErrorContext(&error).to_string()),
        }
    }
}

fn refuse(all: Vec<Ready>, reason: &str) -> Vec<(Ready, String)> {
    all.into_iter().map(|ready| (ready, reason.to_owned())).collect()
}

/// `all` by requests.
fn requests(all: Vec<Ready>) -> Vec<Vec<Ready>> {
    let mut requests: Vec<Vec<Ready>> = Vec::new();
    let mut bytes = 0;
    for ready in all {
        bytes += ready.bytes;
        match requests.last_mut() {
            Some(request) if request.len() < MOST_ENTRIES && bytes <= MOST_BYTES => request.push(ready),
            _ => {
                bytes = ready.bytes;
                requests.push(vec![ready]);
            }
        }
    }
    requests
}

#[async_trait]
impl Bus for EventBridge {
    async fn put(&self, entries: &[Entry]) -> Vec<Refused> {
        let mut left: Vec<_> = entries.iter().enumerate().map(|(index, entry)| self.ready(index, entry)).collect();
        let delays = ExponentialBuilder::new().with_min_delay(MIN_DELAY).with_max_times(MAX_RETRIES).with_jitter();
        let mut delays = delays.build();
        loop {
            let mut refused = Vec::new();
            for request in requests(std::mem::take(&mut left)) {
                refused.extend(self.request(request).await);
            }
            let Some(delay) = delays.next().filter(|_| !refused.is_empty()) else {
                return refused.into_iter().map(|(ready, reason)| Refused { index: ready.index, reason }).collect();
            };
            if let Some(sleep) = self.client.config().sleep_impl() {
                sleep.sleep(delay).await;
            }
            left = refused.into_iter().map(|(ready, _)| ready).collect();
        }
    }
}
