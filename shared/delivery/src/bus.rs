//! What takes events, and hands them to whoever listens.

use async_trait::async_trait;
use billing::CloudEvent;
use serde::{Deserialize, Serialize};

/// Of a record that could not be read: it and its item are as they were, and somebody must look.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum UnreadableRecord {
    #[serde(rename = "record.unreadable")]
    Unreadable {
        /// The item's key.
        pk: String,
        sk: String,
        sequence_number: String,
        /// What is wrong with it. No value of the item is repeated.
        reason: String,
    },
}

/// An event that was made from a record of the stream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum StreamEvent {
    Event(CloudEvent),
    /// The record could not be read. The event names it, so that a person can look at it.
    Unreadable(CloudEvent<UnreadableRecord>),
}

/// What is put on a bus.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Entry {
    /// The sequence number of the record of the stream. Several events may be made from one record.
    pub sequence: String,
    #[serde(flatten)]
    pub event: StreamEvent,
}

/// An entry that a bus did not take, or may not have taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Its place among those that were put.
    pub index: usize,
    pub reason: String,
}

/// Takes events.
#[async_trait]
pub trait Bus: Send + Sync {
    /// Puts `entries`, in this order, and answers those that were not taken. They may be put again: who listens goes by
    /// their ids.
    async fn put(&self, entries: &[Entry]) -> Vec<Refused>;
}
