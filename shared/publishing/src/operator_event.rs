//! Creates the events for operators about stream records.

use billing::{CloudEvent, OperatorEvent};
use chrono::{DateTime, Utc};

/// Returns the event of a change of the heartbeat item at `at`.
pub fn new_heartbeat_event(sequence: &str, source: &str, at: DateTime<Utc>) -> CloudEvent<OperatorEvent> {
    let event = OperatorEvent::Heartbeat { sequence_number: sequence.to_owned() };
    create_cloud_event(sequence, source, store::key_of_heartbeat().pk, at, event)
}

/// Creates the CloudEvent for `event`, which is about the stream record with the sequence number `sequence`.
pub fn create_cloud_event(
    sequence: &str,
    source: &str,
    subject: String,
    at: DateTime<Utc>,
    event: OperatorEvent,
) -> CloudEvent<OperatorEvent> {
    let event_type = event.to_string();
    CloudEvent::with_body(format!("{sequence}.{event_type}"), source, subject, at, &event_type, event)
}
