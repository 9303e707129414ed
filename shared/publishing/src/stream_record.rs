//! Reads one record of a table's change stream, and computes the events of the change. The table is the payments table
//! or the orders table.

use billing::CloudEvent;
use billing::events_between_images;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use store::{Item, TableError, key_of_item};

use crate::StreamEvent;
use crate::operator_event::new_heartbeat_event;

/// The text between the ARN of the table and the name of the stream, in the ARN of a stream.
const STREAM_ARN_INFIX: &str = "/stream/";

/// A record of a table's change stream, without the change. Only the sequence number is known to be valid.
pub struct StreamRecord {
    pub sequence: String,
    /// The ARN of the table; empty if the record does not contain it.
    pub table_arn: String,
    /// The partition key of the changed item; empty if the record does not contain it.
    pub pk: String,
    /// The sort key of the changed item; empty if the record does not contain it.
    pub sk: String,
    /// The time of the change, in whole seconds; `None` if the record does not contain the time. DynamoDB sends whole
    /// seconds, but records of the embedded engine may have fractions.
    pub at: Option<DateTime<Utc>>,
}

/// The change in a stream record: the item before and after the change. An image is absent if the item did not exist.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StreamedChange {
    old_image: Option<serde_dynamo::Item>,
    new_image: Option<serde_dynamo::Item>,
}

impl StreamRecord {
    /// Reads `record`, which has the format of a record in a Lambda event for a DynamoDB stream. Returns the record and
    /// its change; the change is `None` if it is not valid. Returns `None` if the record has no sequence number.
    pub fn read(record: &Value) -> Option<(Self, Option<StreamedChange>)> {
        let change = &record["dynamodb"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let stream_arn = text(&record["eventSourceARN"]);
        let seconds = change["ApproximateCreationDateTime"].to_string();
        let seconds = seconds.split('.').next().and_then(|seconds| seconds.parse().ok());
        let read = Self {
            sequence: change["SequenceNumber"].as_str()?.to_owned(),
            table_arn: stream_arn
                .split_once(STREAM_ARN_INFIX)
                .map_or(stream_arn.as_str(), |(table, _)| table)
                .to_owned(),
            pk: text(&change["Keys"]["PK"]["S"]),
            sk: text(&change["Keys"]["SK"]["S"]),
            at: seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0)),
        };
        // Leave out the error of the JSON decoder, because it may contain a value of the record, and so personal data.
        Some((read, StreamedChange::deserialize(change).ok()))
    }

    /// Returns the events of `change`, which is the change of this record; `None` if the change is not valid.
    ///
    /// # Errors
    /// The reason why the record cannot be read. It contains no value of the item, because values may be personal data.
    pub fn events_of(&self, change: Option<StreamedChange>) -> Result<Vec<StreamEvent>, String> {
        let at = self.at.ok_or("it has no ApproximateCreationDateTime")?;
        if self.pk == store::key_of_heartbeat().pk {
            return Ok(vec![StreamEvent::Operator(new_heartbeat_event(&self.sequence, &self.table_arn, at))]);
        }
        let StreamedChange { old_image, new_image } = change.ok_or("not a DynamoDB stream record")?;
        let (old, new): (Item, Item) = (old_image.unwrap_or_default().into(), new_image.unwrap_or_default().into());
        // The key shows whether the item belongs to the payments table or to the orders table, so read the item with
        // the code of its table.
        let events = if orders_table::is_order_key(&key_of_item(if new.is_empty() { &old } else { &new })) {
            let (old, new) = (
                read_image(&old, orders_table::read_order_from_stream_image)?,
                read_image(&new, orders_table::read_order_from_stream_image)?,
            );
            new.map(|new| orders::order_events(old.as_ref(), &new, at)).unwrap_or_default()
        } else {
            let (old, new) = (read_image(&old, store::read_stream_image)?, read_image(&new, store::read_stream_image)?);
            events_between_images(old.as_ref(), new.as_ref(), at)
        };
        Ok(events.into_iter().map(|event| StreamEvent::Event(CloudEvent::new(event, &self.table_arn))).collect())
    }
}

/// Reads the image `item` of a stream record with `read`. Returns `None` if the image is empty: the item did not exist
/// before the change (old image), or does not exist after it (new image).
fn read_image<T>(item: &Item, read: impl Fn(&Item) -> Result<Option<T>, TableError>) -> Result<Option<T>, String> {
    if item.is_empty() { Ok(None) } else { read(item).map_err(|error| error.to_string()) }
}
