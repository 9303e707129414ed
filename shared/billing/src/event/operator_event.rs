//! Events for operators about the publication of the stream itself. They are not about subscriptions or orders, so they
//! are not delivered to webhook endpoints.

use serde::{Deserialize, Serialize};
use strum::Display;

/// The type and the data of an event for operators.
#[derive(Clone, PartialEq, Eq, Debug, Display, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum OperatorEvent {
    /// A stream record cannot be read. It is published as this event, so that it does not block the records after it.
    /// The record and its item are unchanged, and an operator must investigate.
    #[serde(rename = "record.unreadable")]
    #[strum(serialize = "record.unreadable")]
    RecordUnreadable {
        /// The item's partition key.
        pk: String,
        /// The item's sort key.
        sk: String,
        sequence_number: String,
        /// Why the record cannot be read. Contains no value of the item, because values may be personal data.
        reason: String,
    },
    /// A schedule has written the heartbeat item of the table. The arrival of this event on the bus shows that the stream
    /// is being published.
    #[serde(rename = "heartbeat")]
    #[strum(serialize = "heartbeat")]
    Heartbeat { sequence_number: String },
}
