//! The event bus: accepts events and passes them to their subscribers.

use async_trait::async_trait;
use billing::{CloudEvent, OperatorEvent};
use serde::Serialize;

/// An event that was created from a record of a table's change stream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "nearly every entry is an event")]
pub enum StreamEvent {
    /// An event for the merchant.
    Event(CloudEvent),
    /// An event only for operators, about a record that has no event for the merchant.
    Operator(CloudEvent<OperatorEvent>),
}

/// An event with its position in the stream, ready to be published on a bus.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BusEntry {
    /// The sequence number of the stream record. One record may produce several events.
    pub sequence: String,
    #[serde(flatten)]
    pub event: StreamEvent,
}

/// An entry whose publication failed or is unconfirmed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedEntry {
    /// The index of the entry in the slice passed to [`EventBus::publish_entries`].
    pub index: usize,
    pub reason: String,
}

/// A bus on which events are published.
#[async_trait]
pub trait EventBus: Send + Sync {
    /// Publishes `entries` in this order, and returns the entries whose publication failed. The caller may publish the
    /// failed entries again, because subscribers ignore events whose id they have already seen.
    async fn publish_entries(&self, entries: &[BusEntry]) -> Vec<FailedEntry>;
}
