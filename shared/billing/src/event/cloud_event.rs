//! The envelope of published events: CloudEvents 1.0 in JSON
//! (<https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md>).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::event::data::EventData;

/// The version of the event schemas. This version is increased if a consumer of the old schemas could misinterpret new
/// events.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// A published event: one JSON object.
///
/// Every event is published at least once. Events have no particular order. Two events with the same `id` are the same
/// event. Of two events of the same subscription or account, the event with the higher `data.version` is the later
/// event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CloudEvent<B = EventData> {
    specversion: String,
    /// The id of the event. A repeated publication of the same event has the same id.
    pub id: String,
    /// The URI of the table in which the change happened.
    pub source: String,
    /// The subject of the event ([`Event::subject`]). If the event was published because a record of the DynamoDB
    /// stream cannot be read, the subject is the key of the changed item.
    pub subject: String,
    /// When the change happened.
    pub time: DateTime<Utc>,
    datacontenttype: String,
    /// The URN of the schema of `data`, with its version.
    pub dataschema: String,
    /// The type and the data of the event: the JSON fields `type` and `data`.
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
    /// Creates the envelope for `body`, the type and the data of an event. `event_type` is this type as text.
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
