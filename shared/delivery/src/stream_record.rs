//! One record of the stream, read.

use std::collections::HashMap;

use aws_lambda_events::dynamodb::EventRecord;
use billing::CloudEvent;
use billing::events;
use chrono::{DateTime, Utc};
use serde_json::Value;
use store::image;

use crate::{Entry, StreamEvent, UnreadableRecord};

/// The table that a stream belongs to is named before this in the stream's ARN.
const STREAM: &str = "/stream/";

/// Returns the events of `record`.
pub fn read(record: &Value) -> Vec<Entry> {
    let sequence = record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default().to_owned();
    match events_of(record) {
        Ok(events) => events.into_iter().map(|event| Entry { sequence: sequence.clone(), event }).collect(),
        Err(reason) => {
            let event = StreamEvent::Unreadable(set_aside(record, &sequence, reason));
            vec![Entry { sequence, event }]
        }
    }
}

fn events_of(record: &Value) -> Result<Vec<StreamEvent>, String> {
    // What the decoder says of a record may repeat a value of it.
    let record: EventRecord = serde_json::from_value(record.clone()).map_err(|_| "it is no record of a stream")?;
    let arn = record.event_source_arn.as_deref().unwrap_or_default();
    let change = record.change;
    let read = |item: serde_dynamo::Item| {
        let item: HashMap<_, _> = item.into();
        if item.is_empty() { Ok(None) } else { image(&item).map_err(|error| error.to_string()) }
    };
    let (old, new) = (read(change.old_image)?, read(change.new_image)?);
    let events = events(old.as_ref(), new.as_ref(), change.approximate_creation_date_time);
    Ok(events.into_iter().map(|event| StreamEvent::Event(CloudEvent::new(event, table_of(arn)))).collect())
}

fn set_aside(record: &Value, sequence: &str, reason: String) -> CloudEvent<UnreadableRecord> {
    let key = |name: &str| record["dynamodb"]["Keys"][name]["S"].as_str().unwrap_or_default().to_owned();
    // Whole seconds, though the engine's own records may have fractions.
    let seconds = record["dynamodb"]["ApproximateCreationDateTime"].to_string();
    let seconds = seconds.split('.').next().and_then(|whole| whole.parse().ok()).unwrap_or_default();
    let at = DateTime::<Utc>::from_timestamp(seconds, 0).unwrap_or_default();
    let (pk, sk) = (key("PK"), key("SK"));
    let source = table_of(record["eventSourceARN"].as_str().unwrap_or_default());
    let subject = format!("{pk} {sk}");
    let data = UnreadableRecord::Unreadable { pk, sk, sequence_number: sequence.to_owned(), reason };
    CloudEvent::of(format!("{sequence}.record.unreadable"), source, subject, at, "record.unreadable", data)
}

fn table_of(arn: &str) -> &str {
    arn.split_once(STREAM).map_or(arn, |(table, _)| table)
}
