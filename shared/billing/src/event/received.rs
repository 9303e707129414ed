//! Events as a queue delivers them.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::AccountId;
use super::CloudEvent;

/// An event that a consumer has received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivedEvent {
    pub id: String,
    /// The name of its type, which this version may not know.
    pub event_type: String,
    /// The account that the event is about, if it names one.
    pub account: Option<AccountId>,
    /// The event exactly as it was published.
    pub json: String,
    event: Option<CloudEvent>,
}

/// A consumer cannot use a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message is no event")]
pub struct UnreadableEvent;

/// The attributes that every CloudEvent has.
#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "specversion")]
    _spec_version: String,
    id: String,
    #[serde(rename = "type")]
    event_type: String,
    subject: Option<String>,
}

/// EventBridge's own envelope, in which it sends the events that it could not deliver.
#[derive(Deserialize)]
struct EventBridgeEnvelope<'a> {
    #[serde(borrow)]
    detail: &'a RawValue,
}

impl ReceivedEvent {
    /// Reads the event in `message`, the body of a queue's message: a CloudEvent in JSON, or EventBridge's own envelope
    /// around one. An event of a type that this version does not know is read as well.
    ///
    /// # Errors
    /// [`UnreadableEvent`]: the message holds no CloudEvent.
    pub fn read(message: &str) -> Result<Self, UnreadableEvent> {
        Self::parse(message)
            .or_else(|| Self::parse(serde_json::from_str::<EventBridgeEnvelope<'_>>(message).ok()?.detail.get()))
            .ok_or(UnreadableEvent)
    }

    fn parse(json: &str) -> Option<Self> {
        let Envelope { id, event_type, subject, .. } = serde_json::from_str(json).ok()?;
        let account = subject.and_then(|subject| subject.parse().ok());
        Some(Self { id, event_type, account, json: json.to_owned(), event: serde_json::from_str(json).ok() })
    }

    /// The content of the event.
    ///
    /// # Errors
    /// [`UnreadableEvent`]: this version does not know the event's type, or cannot read its data.
    pub fn content(&self) -> Result<&CloudEvent, UnreadableEvent> {
        self.event.as_ref().ok_or(UnreadableEvent)
    }
}

/// An event that is consumed by the process that publishes it.
impl From<CloudEvent> for ReceivedEvent {
    fn from(event: CloudEvent) -> Self {
        Self {
            id: event.id.clone(),
            event_type: event.body.event_type().to_string(),
            account: event.subject.parse().ok(),
            json: serde_json::to_string(&event).expect("events are representable"),
            event: Some(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AccountNews, Event, News};
    use super::*;
    use crate::MailStatus;

    fn published() -> CloudEvent {
        let account: AccountId = "acme".parse().unwrap();
        let news = News::AccountCreated(AccountNews {
            account: account.clone(),
            version: 1,
            locale: "en".parse().unwrap(),
            mail_status: MailStatus::Deliverable,
        });
        CloudEvent::new(Event { id: "1".to_owned(), account, at: chrono::DateTime::UNIX_EPOCH, news }, "urn:table")
    }

    #[test]
    fn event_is_read_with_and_without_the_envelope_of_event_bridge() {
        let event = ReceivedEvent::from(published());
        assert_eq!((event.event_type.as_str(), event.account.as_ref().unwrap().as_str()), ("account.created", "acme"));
        assert_eq!(event.content(), Ok(&published()));
        assert_eq!(ReceivedEvent::read(&event.json).as_ref(), Ok(&event));
        let undelivered =
            format!(r#"{{"version":"0","id":"2","detail-type":"account.created","detail":{}}}"#, event.json);
        assert_eq!(ReceivedEvent::read(&undelivered), Ok(event));
    }

    #[test]
    fn event_of_an_unknown_type_keeps_its_text() {
        let json = r#"{ "type": "a.later_one",  "id": "3", "specversion": "1.0", "data": {"z": 1, "a": 1.10} }"#;
        for message in [json.to_owned(), format!(r#"{{"detail":{json}}}"#)] {
            let event = ReceivedEvent::read(&message).unwrap();
            assert_eq!(
                (event.id.as_str(), event.event_type.as_str(), event.account.as_ref()),
                ("3", "a.later_one", None)
            );
            assert_eq!((event.json.as_str(), event.content()), (json, Err(UnreadableEvent)));
        }
    }

    #[test]
    fn message_without_an_event_is_unreadable() {
        for message in ["", "{}", "[]", r#"{"id":"1","type":"a"}"#, r#"{"detail":{"id":1}}"#, r#"{"detail":"text"}"#] {
            assert_eq!(ReceivedEvent::read(message), Err(UnreadableEvent), "{message}");
        }
    }
}
