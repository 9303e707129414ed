//! Unreadable stream records. Such a record is published as an event for operators, so that it does not block the
//! records after it.

use billing::{CloudEvent, OperatorEvent};

use crate::operator_event::create_cloud_event;
use crate::stream_record::{StreamRecord, StreamedChange};
use crate::{BusEntry, StreamEvent};

/// Returns the events of `change`, which is the change of `record`. Returns one `record.unreadable` event if the record
/// cannot be read.
pub fn bus_entries_of_record((record, change): (StreamRecord, Option<StreamedChange>)) -> Vec<BusEntry> {
    let events = record
        .events_of(change)
        .unwrap_or_else(|reason| vec![StreamEvent::Operator(unreadable_record_event(&record, reason))]);
    events.into_iter().map(|event| BusEntry { sequence: record.sequence.clone(), event }).collect()
}

/// Returns the event that is published instead of the events of an unreadable `record`.
fn unreadable_record_event(record: &StreamRecord, reason: String) -> CloudEvent<OperatorEvent> {
    let StreamRecord { sequence, table_arn, pk, sk, at, .. } = record;
    let subject = format!("{pk} {sk}");
    let event =
        OperatorEvent::RecordUnreadable { pk: pk.clone(), sk: sk.clone(), sequence_number: sequence.clone(), reason };
    create_cloud_event(sequence, table_arn, subject, at.unwrap_or_default(), event)
}
