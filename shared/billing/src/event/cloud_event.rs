//! The envelope: CloudEvents 1.0 in its JSON format
//! (<https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md>).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{Event, News};

/// The version of the events' schemas: raised when a listener of the old ones could misread a new one.
const SCHEMA_VERSION: u32 = 1;

/// An event as it is sent, one JSON object.
///
/// Everything is sent at least once, and in no order: an `id` that was seen before is the same event, and of two events of a
/// subscription or an account the one whose `data.version` is higher is the later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CloudEvent<B = News> {
    specversion: String,
    /// Equal whenever the same event is made again.
    pub id: String,
    /// The table whose event it is.
    pub source: String,
    /// The account.
    pub subject: String,
    /// When it happened.
    pub time: DateTime<Utc>,
    datacontenttype: String,
    /// The name of the schema of `data`, with its version.
    pub dataschema: String,
    /// `type` and `data`.
    #[serde(flatten)]
    pub body: B,
}

impl CloudEvent {
    /// The envelope of `event`, which has happened in the table that is called `source`: a URI, such as its ARN.
    pub fn new(event: Event, source: &str) -> Self {
        let Event { id, account, at, news } = event;
        let event_type = news.event_type().to_string();
        Self::of(id, source, account.to_string(), at, &event_type, news)
    }
}

impl<B> CloudEvent<B> {
    /// The envelope of `body`, whose type is called `event_type`.
    pub fn of(id: String, source: &str, subject: String, at: DateTime<Utc>, event_type: &str, body: B) -> Self {
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
