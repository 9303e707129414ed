//! Publishes batches of stream records.

use billing::OperatorEvent;
use serde_json::Value;

use crate::stream_record::StreamRecord;
use crate::unreadable_record::bus_entries_of_record;
use crate::{EventBus, StreamEvent};

/// Publishes the events of stream records on a bus.
#[derive(Debug)]
pub struct Publisher<B> {
    bus: B,
}

/// The outcome of publishing a batch of stream records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PublishOutcome {
    /// The number of published events.
    pub events: usize,
    /// The number of records that could not be read. A `record.unreadable` event replaces each of them.
    pub unreadable: usize,
    /// The sequence number of the first record with an unpublished event. Events of later records may have been
    /// published.
    pub first_unpublished: Option<String>,
    /// Why an event of the record `first_unpublished` was not published.
    pub failure_reason: Option<String>,
}

/// The error for an input that is not a batch of DynamoDB stream records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the input is not a batch of DynamoDB stream records: Records is missing, or a record has no SequenceNumber")]
pub struct StreamBatchError;

impl<B: EventBus> Publisher<B> {
    /// Creates a publisher that publishes events on `bus`.
    pub fn new(bus: B) -> Self {
        Self { bus }
    }

    /// Publishes the events of all records in `batch`, which has the format of a Lambda event for a DynamoDB stream.
    ///
    /// # Errors
    /// Returns an error if `batch` has no `Records` or a record without a `SequenceNumber`. In this case nothing is
    /// published.
    pub async fn publish(&self, batch: &Value) -> Result<PublishOutcome, StreamBatchError> {
        let records = batch["Records"].as_array().ok_or(StreamBatchError)?;
        // Every record must have a sequence number: after a failure, the caller continues at the sequence number of the
        // failed record.
        let records = records.iter().map(|record| StreamRecord::read(record).ok_or(StreamBatchError));
        let records: Vec<_> = records.collect::<Result<_, _>>()?;
        let entries: Vec<_> = records.into_iter().flat_map(bus_entries_of_record).collect();
        let unreadable = entries.iter().filter_map(|entry| match &entry.event {
            StreamEvent::Operator(event) if matches!(event.body, OperatorEvent::RecordUnreadable { .. }) => Some(event),
            StreamEvent::Operator(_) | StreamEvent::Event(_) => None,
        });
        let unreadable = unreadable.inspect(|event| {
            tracing::error!(record = ?event.body, "a stream record cannot be read; publishing record.unreadable instead");
        });
        let unreadable = unreadable.count();
        let failed = if entries.is_empty() { Vec::new() } else { self.bus.publish_entries(&entries).await };
        let first = failed.iter().min_by_key(|failed| failed.index);
        if let Some(first) = first {
            tracing::error!(
                refused = failed.len(),
                of = entries.len(),
                reason = first.reason,
                "events could not be published and will be retried"
            );
        }
        Ok(PublishOutcome {
            events: entries.len() - failed.len(),
            unreadable,
            first_unpublished: first.map(|first| entries[first.index].sequence.clone()),
            failure_reason: first.map(|first| first.reason.clone()),
        })
    }
}
