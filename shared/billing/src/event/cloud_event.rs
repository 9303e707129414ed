//! The envelope of published events: CloudEvents 1.0 in JSON
//! (<https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md>).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{Event, EventData};

/// The version of the event schemas. It is increased if a consumer of the old schemas could misinterpret a new event.
const SCHEMA_VERSION: u32 = 1;

/// A published event: one JSON object.
///
/// Every event is published at least once, in no particular order. Two events with the same `id` are the same event. Of
/// two events of a subscription or an account, the one with the higher `data.version` is the later one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CloudEvent<B = EventData> {
    specversion: String,
    /// The id of the event. A repeated publication of the same event has the same id.
    pub id: String,
    /// The URI of the table in which the change happened.
    pub source: String,
    /// The subject of the event, from [`Event::subject`]; for the event of an unreadable stream record, the key of the
    /// item.
    pub subject: String,
    /// When the change happened.
    pub time: DateTime<Utc>,
    datacontenttype: String,
    /// The URN of the schema of `data`, with its version.
    pub dataschema: String,
    /// The fields `type` and `data`.
    #[serde(flatten)]
    pub body: B,
}

impl CloudEvent {
    /// Creates the envelope of `event`. `source` is a URI of the table, such as its ARN.
    pub fn new(event: Event, source: &str) -> Self {
        let Event { id, subject, at, data } = event;
        let event_type = data.event_type().to_string();
        Self::with_body(id, source, subject, at, &event_type, data)
    }
}

impl<B> CloudEvent<B> {
    /// Creates an envelope with `body`, whose event type is `event_type`.
    pub fn with_body(id: String, source: &str, subject: String, at: DateTime<Utc>, event_type: &str, body: B) -> Self {
        Self {
            specversion: "1.0".to_owned(),
            id,
            source: source.to_owned(),
            subject,
            time: at,
            datacontenttype: "application/json".to_owned(),
            dataschema: format!("urn:dueday:event:{event_type}:{SCHEMA_VERSION}"),
            body,
        }
    }
}
