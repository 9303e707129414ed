//! The envelope: CloudEvents 1.0 in its JSON format
//! (<https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md>).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::billing::{AccountId, Event, News};

/// The version of the events' schemas: raised when a listener of the old ones could misread a new one.
const SCHEMA_VERSION: u32 = 1;

/// An event as it is sent, one JSON object.
///
/// Everything is sent at least once, and in no order: an `id` that was seen before is the same event, and of two events of a
/// subscription or an account the one whose `data.version` is higher is the later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CloudEvent {
    specversion: String,
    /// Equal whenever the same event is made again.
    pub id: String,
    /// The table whose event it is.
    pub source: String,
    /// The account.
    pub subject: AccountId,
    /// When it happened.
    pub time: DateTime<Utc>,
    datacontenttype: String,
    /// The name of the schema of `data`, with its version.
    pub dataschema: String,
    /// `type` and `data`.
    #[serde(flatten)]
    pub news: News,
}

impl CloudEvent {
    /// The envelope of `event`, which has happened in the table that is called `source`: a URI, such as its ARN.
    pub fn new(event: Event, source: &str) -> Self {
        let Event { id, account, at, news } = event;
        Self {
            specversion: "1.0".to_owned(),
            id,
            source: source.to_owned(),
            subject: account,
            time: at,
            datacontenttype: "application/json".to_owned(),
            dataschema: format!("urn:dueday:event:{}:{SCHEMA_VERSION}", news.event_type()),
            news,
        }
    }
}
