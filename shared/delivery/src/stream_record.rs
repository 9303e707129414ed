//! Reads one record of the stream of the table, and computes the events of the change in it.

use std::collections::HashMap;

use aws_lambda_events::dynamodb::EventRecord;
use billing::CloudEvent;
use billing::events_between_images;
use serde_json::Value;
use store::read_stream_image;

use crate::unreadable_record::unreadable_record;
use crate::{BusEntry, StreamEvent};

/// The text in the ARN of a stream that follows the ARN of its table.
const STREAM_ARN_INFIX: &str = "/stream/";

/// Returns the events of the change in `record`, or one `record.unreadable` event if the record cannot be read.
pub fn read_events(record: &Value) -> Vec<BusEntry> {
    let sequence = record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default().to_owned();
    match events_from_record(record) {
        Ok(events) => events.into_iter().map(|event| BusEntry { sequence: sequence.clone(), event }).collect(),
        Err(reason) => {
            let source = table_arn(record["eventSourceARN"].as_str().unwrap_or_default());
            let event = StreamEvent::Unreadable(unreadable_record(record, &sequence, source, reason));
            vec![BusEntry { sequence, event }]
        }
    }
}

fn events_from_record(record: &Value) -> Result<Vec<StreamEvent>, String> {
    // The decoder's own error is not used, because it may contain a value of the record.
    let record: EventRecord = serde_json::from_value(record.clone()).map_err(|_| "not a DynamoDB stream record")?;
    let arn = record.event_source_arn.as_deref().unwrap_or_default();
    let change = record.change;
    let read_item = |item: serde_dynamo::Item| {
        let item: HashMap<_, _> = item.into();
        if item.is_empty() { Ok(None) } else { read_stream_image(&item).map_err(|error| error.to_string()) }
    };
    let (old, new) = (read_item(change.old_image)?, read_item(change.new_image)?);
    let events = events_between_images(old.as_ref(), new.as_ref(), change.approximate_creation_date_time);
    Ok(events.into_iter().map(|event| StreamEvent::Event(CloudEvent::new(event, table_arn(arn)))).collect())
}

/// Returns the table's ARN, which is the first part of `stream_arn`.
fn table_arn(stream_arn: &str) -> &str {
    stream_arn.split_once(STREAM_ARN_INFIX).map_or(stream_arn, |(table, _)| table)
}
