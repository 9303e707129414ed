//! Events that a consumer receives from an SQS queue, or reads from the stored events of one machine.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::cloud_event::CloudEvent;
use crate::values::ids::AccountId;

/// An event that a consumer has received or read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivedEvent {
    /// The id of the event.
    pub id: String,
    /// The event type, which may be unknown to this version of Dueday.
    pub event_type: String,
    /// The subject of the event, as in [`CloudEvent::subject`], if the event has one.
    pub subject: Option<String>,
    /// When the change happened, if the event contains a valid time.
    pub time: Option<DateTime<Utc>>,
    /// The event exactly as it was published.
    pub json: String,
    /// The parsed event; `None` if this version of Dueday does not know the event type or cannot read the data of the
    /// event.
    event: Option<CloudEvent>,
}

/// The error for a message that is not an event that this version of Dueday can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this version of Dueday cannot read the event in the message")]
pub struct UnreadableEvent;

/// The required attributes of a CloudEvent, its subject and its time. The subject is the account id, if the event
/// belongs to an account.
#[derive(Deserialize)]
struct CloudEventEnvelope {
    #[serde(rename = "specversion")]
    _spec_version: String,
    id: String,
    #[serde(rename = "type")]
    event_type: String,
    subject: Option<String>,
    time: Option<String>,
}

/// The envelope that EventBridge adds to an event in a dead-letter queue.
#[derive(Deserialize)]
struct EventBridgeEnvelope<'a> {
    #[serde(borrow)]
    detail: &'a RawValue,
}

impl ReceivedEvent {
    /// Reads the event in `message`, which is the body of a queue message or a line of the stored events: a CloudEvent
    /// in JSON, with or without the envelope of EventBridge. The type of the event may be unknown to this version of
    /// Dueday.
    ///
    /// # Errors
    /// [`UnreadableEvent`] if the message contains no CloudEvent.
    pub fn read(message: &str) -> Result<Self, UnreadableEvent> {
        Self::parse(message)
            .or_else(|| Self::parse(serde_json::from_str::<EventBridgeEnvelope<'_>>(message).ok()?.detail.get()))
            .ok_or(UnreadableEvent)
    }

    /// Reads the event in `json`, a CloudEvent without the envelope of EventBridge.
    fn parse(json: &str) -> Option<Self> {
        let CloudEventEnvelope { id, event_type, subject, time, .. } = serde_json::from_str(json).ok()?;
        let time = time.and_then(|time| time.parse().ok());
        Some(Self { id, event_type, subject, time, json: json.to_owned(), event: serde_json::from_str(json).ok() })
    }

    /// Returns the account of the event, if its subject is a valid account id.
    pub fn account(&self) -> Option<AccountId> {
        self.subject.as_ref()?.parse().ok()
    }

    /// Returns the parsed event, with its data.
    ///
    /// # Errors
    /// [`UnreadableEvent`] if the event type is unknown to this version of Dueday, or its data cannot be read.
    pub fn content(&self) -> Result<&CloudEvent, UnreadableEvent> {
        self.event.as_ref().ok_or(UnreadableEvent)
    }
}

/// Converts an event for a consumer that runs in the same process as the publisher, without a queue.
impl From<CloudEvent> for ReceivedEvent {
    fn from(event: CloudEvent) -> Self {
        Self {
            id: event.id.clone(),
            event_type: event.body.event_type().to_string(),
            subject: Some(event.subject.clone()),
            time: Some(event.time),
            json: serde_json::to_string(&event).expect("events can be serialized"),
            event: Some(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::event::data::{AccountEventData, EventData};
    use crate::values::account::MailStatus;

    /// Returns an example event of the type `account.created`.
    fn account_created_event() -> CloudEvent {
        let account: AccountId = "acme".parse().unwrap();
        let data = EventData::AccountCreated(AccountEventData {
            account: account.clone(),
            version: 1,
            locale: "en".parse().unwrap(),
            mail_status: MailStatus::Deliverable,
        });
        CloudEvent::new(
            Event { id: "1".to_owned(), subject: account.to_string(), at: chrono::DateTime::UNIX_EPOCH, data },
            "urn:table",
        )
    }

    #[test]
    fn event_is_read_with_and_without_the_envelope_of_event_bridge() {
        let event = ReceivedEvent::from(account_created_event());
        assert_eq!((event.event_type.as_str(), event.account().unwrap().as_str()), ("account.created", "acme"));
        assert_eq!(event.content(), Ok(&account_created_event()));
        assert_eq!(ReceivedEvent::read(&event.json).as_ref(), Ok(&event));
        let undelivered =
            format!(r#"{{"version":"0","id":"2","detail-type":"account.created","detail":{}}}"#, event.json);
        assert_eq!(ReceivedEvent::read(&undelivered), Ok(event));
    }

    #[test]
    fn event_of_an_unknown_type_keeps_its_json() {
        let json = r#"{ "type": "a.later_one",  "id": "3", "specversion": "1.0", "data": {"z": 1, "a": 1.10} }"#;
        for message in [json.to_owned(), format!(r#"{{"detail":{json}}}"#)] {
            let event = ReceivedEvent::read(&message).unwrap();
            assert_eq!((event.id.as_str(), event.event_type.as_str(), event.account()), ("3", "a.later_one", None));
            assert_eq!((event.json.as_str(), event.content()), (json, Err(UnreadableEvent)));
        }
    }

    #[test]
    fn message_without_an_event_is_refused() {
        for message in ["", "{}", "[]", r#"{"id":"1","type":"a"}"#, r#"{"detail":{"id":1}}"#, r#"{"detail":"text"}"#] {
            assert_eq!(ReceivedEvent::read(message), Err(UnreadableEvent), "{message}");
        }
    }
}
