//! Reads one record of a table's change stream, and computes the events of the change. The table is the payments table
//! or the orders table.

use aws_lambda_events::dynamodb::EventRecord;
use billing::CloudEvent;
use billing::events_between_images;
use serde_json::Value;
use store::{Item, TableError, key_of};

use crate::operator_event::{heartbeat_event, time_of_change, unreadable_record_event};
use crate::{BusEntry, StreamEvent};

/// The text between the ARN of the table and the name of the stream, in the ARN of a stream.
const STREAM_ARN_INFIX: &str = "/stream/";

/// Returns the events of the change in `record`, or one `record.unreadable` event if the record cannot be read.
pub fn read_events(record: &Value) -> Vec<BusEntry> {
    let sequence = record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default().to_owned();
    let source = table_arn(record["eventSourceARN"].as_str().unwrap_or_default());
    let events = events_from_record(record, &sequence, source).unwrap_or_else(|reason| {
        vec![StreamEvent::Operator(unreadable_record_event(record, &sequence, source, reason))]
    });
    events.into_iter().map(|event| BusEntry { sequence: sequence.clone(), event }).collect()
}

/// Returns the events of the change in `record`, or the reason why the record cannot be read. `sequence` is the
/// sequence number of the record, and `source` is the ARN of the table.
fn events_from_record(record: &Value, sequence: &str, source: &str) -> Result<Vec<StreamEvent>, String> {
    // Check that the record contains its time: the type `EventRecord`, which is read below, would silently replace a
    // missing time by a time in 1970.
    let at = time_of_change(record).ok_or("it has no ApproximateCreationDateTime")?;
    if record["dynamodb"]["Keys"]["PK"]["S"] == store::key_of_heartbeat().pk {
        return Ok(vec![StreamEvent::Operator(heartbeat_event(sequence, source, at))]);
    }
    // Replace the error of the JSON decoder by a fixed text, because the decoder's error may contain a value of the
    // record, and so personal data.
    let record: EventRecord = serde_json::from_value(record.clone()).map_err(|_| "not a DynamoDB stream record")?;
    let change = record.change;
    let (old, new): (Item, Item) = (change.old_image.into(), change.new_image.into());
    let at = change.approximate_creation_date_time;
    // The key shows whether the item belongs to the payments table or to the orders table, so read the item with the
    // code of its table.
    let events = if orders::is_order_key(&key_of(if new.is_empty() { &old } else { &new })) {
        let (old, new) = (
            read_image(&old, orders::read_order_from_stream_image)?,
            read_image(&new, orders::read_order_from_stream_image)?,
        );
        new.map(|new| orders::order_events(old.as_ref(), &new, at)).unwrap_or_default()
    } else {
        let (old, new) = (read_image(&old, store::read_stream_image)?, read_image(&new, store::read_stream_image)?);
        events_between_images(old.as_ref(), new.as_ref(), at)
    };
    Ok(events.into_iter().map(|event| StreamEvent::Event(CloudEvent::new(event, source))).collect())
}

/// Reads the image `item` of a stream record with `read`. Returns `None` if the image is empty: the item did not exist
/// before the change (old image), or does not exist after it (new image).
fn read_image<T>(item: &Item, read: impl Fn(&Item) -> Result<Option<T>, TableError>) -> Result<Option<T>, String> {
    if item.is_empty() { Ok(None) } else { read(item).map_err(|error| error.to_string()) }
}

/// Returns the table's ARN, which is the first part of `stream_arn`.
fn table_arn(stream_arn: &str) -> &str {
    stream_arn.split_once(STREAM_ARN_INFIX).map_or(stream_arn, |(table, _)| table)
}
