//! Batches of the stream's records, published.

use serde_json::Value;

use crate::stream_record::read;
use crate::{Bus, StreamEvent};

/// Publishes what the stream's records tell.
#[derive(Debug)]
pub struct Publisher<B> {
    bus: B,
}

/// What became of a batch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Published {
    /// What the bus took.
    pub events: usize,
    /// Records among them that could not be read.
    pub unreadable: usize,
    /// The sequence number of the first record of which something was not published. What follows it may have been.
    pub not_published_from: Option<String>,
    /// Why that was not.
    pub refused: Option<String>,
}

/// What was handed over is no batch of a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a batch of a DynamoDB stream: it has no Records, or one without a SequenceNumber")]
pub struct BatchError;

impl<B: Bus> Publisher<B> {
    /// Publishes on `bus`.
    pub fn new(bus: B) -> Self {
        Self { bus }
    }

    /// Publishes what the records of `batch` tell: the event that Lambda makes of a stream.
    ///
    /// # Errors
    /// [`BatchError`]: nothing was published.
    pub async fn publish(&self, batch: &Value) -> Result<Published, BatchError> {
        let records = batch["Records"].as_array().ok_or(BatchError)?;
        // Without it nobody could be told where to go on.
        if records.iter().any(|record| !record["dynamodb"]["SequenceNumber"].is_string()) {
            return Err(BatchError);
        }
        let entries: Vec<_> = records.iter().flat_map(read).collect();
        let unreadable = entries.iter().filter_map(|entry| match &entry.event {
            StreamEvent::Unreadable(record) => Some(record),
            StreamEvent::Event(_) => None,
        });
        let unreadable = unreadable.inspect(|record| {
            tracing::error!(record = ?record.body, "a record of the stream cannot be read, and is set aside");
        });
        let unreadable = unreadable.count();
        let refused = if entries.is_empty() { Vec::new() } else { self.bus.put(&entries).await };
        let first = refused.iter().min_by_key(|refused| refused.index);
        if let Some(first) = first {
            tracing::error!(refused = refused.len(), of = entries.len(), reason = first.reason, "events are put again");
        }
        Ok(Published {
            events: entries.len() - refused.len(),
            unreadable,
            not_published_from: first.map(|first| entries[first.index].sequence.clone()),
            refused: first.map(|first| first.reason.clone()),
        })
    }
}
