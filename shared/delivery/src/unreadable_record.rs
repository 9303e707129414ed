//! Poison records: stream records that cannot be read. Each of them is published as a `record.unreadable` event, so
//! that it does not block the records after it.

use billing::CloudEvent;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The data of the event `record.unreadable`. The record and its item are unchanged, and an operator must investigate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum UnreadableRecord {
    #[serde(rename = "record.unreadable")]
    Unreadable {
        /// The item's partition key.
        pk: String,
        /// The item's sort key.
        sk: String,
        sequence_number: String,
        /// Why the record cannot be read. Contains no value of the item, because values may be personal data.
        reason: String,
    },
}

/// Returns the event that is published instead of the events of an unreadable `record`.
pub fn unreadable_record(record: &Value, sequence: &str, source: &str, reason: String) -> CloudEvent<UnreadableRecord> {
    let key = |name: &str| record["dynamodb"]["Keys"][name]["S"].as_str().unwrap_or_default().to_owned();
    // Drop the fraction: DynamoDB sends whole seconds, but records of the embedded engine may have fractions.
    let seconds = record["dynamodb"]["ApproximateCreationDateTime"].to_string();
    let seconds = seconds.split('.').next().and_then(|whole| whole.parse().ok()).unwrap_or_default();
    let at = DateTime::<Utc>::from_timestamp(seconds, 0).unwrap_or_default();
    let (pk, sk) = (key("PK"), key("SK"));
    let subject = format!("{pk} {sk}");
    let data = UnreadableRecord::Unreadable { pk, sk, sequence_number: sequence.to_owned(), reason };
    CloudEvent::with_body(format!("{sequence}.record.unreadable"), source, subject, at, "record.unreadable", data)
}
