//! The mails of the demo's simulation. They are written to the outbox only after the simulation has ended. So an
//! interrupted demo writes no mails, and a repeated demo writes each mail once.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use billing::ReceivedEvent;
use deployment::Deployment;
use emulator::{Engine, TableStream};
use mail::{Mail, MailError, Mailer};
use notices::CustomerNotifier;
use publishing::{BusEntry, EventBus, FailedEntry, Publisher, StreamEvent};

use crate::Failure;

/// The largest number of stream records that are read at once.
const MAX_STREAM_RECORDS: usize = 500;

/// The mails that the simulation has sent, and that are not written to the outbox yet.
#[derive(Debug, Default)]
pub struct UnsentMails(Mutex<Vec<Mail>>);

impl UnsentMails {
    /// Returns all mails, the earliest first, and removes them.
    pub fn take(&self) -> Vec<Mail> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Mailer for UnsentMails {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(mail.clone());
        Ok(())
    }
}

/// A bus in memory that stores the events until they are removed.
#[derive(Clone, Debug, Default)]
struct InMemoryBus(Arc<Mutex<Vec<ReceivedEvent>>>);

#[async_trait]
impl EventBus for InMemoryBus {
    async fn publish_entries(&self, entries: &[BusEntry]) -> Vec<FailedEntry> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(entries.iter().filter_map(|entry| match &entry.event {
            StreamEvent::Event(event) => Some(ReceivedEvent::from(event.clone())),
            StreamEvent::Operator(_) => None,
        }));
        Vec::new()
    }
}

/// Sends the mails about the events of the simulation, like the notices function on AWS.
pub struct SimulationNotices {
    stream: TableStream,
    /// The sequence number of the last stream record that was read.
    position: Option<String>,
    bus: InMemoryBus,
    publisher: Publisher<InMemoryBus>,
    notices: CustomerNotifier,
}

impl SimulationNotices {
    /// Creates the sender for the simulated deployment `past`, whose table is in `engine`.
    ///
    /// # Errors
    /// If the table has no change stream.
    pub fn new(past: &Deployment, engine: &Engine) -> Result<Self, Failure> {
        let merchant = past.config.merchant.clone();
        let notices = CustomerNotifier::new(past.table.clone(), past.mailer.clone(), merchant, past.clock.clone());
        let bus = InMemoryBus::default();
        let stream = engine.stream(past.table.name())?;
        Ok(Self { stream, position: None, publisher: Publisher::new(bus.clone()), bus, notices })
    }

    /// Sends the notices about all changes since the last call.
    ///
    /// # Errors
    /// If the stream or the table cannot be read.
    pub async fn send_new_notices(&mut self) -> Result<(), Failure> {
        let failure =
            |error: &dyn std::fmt::Display| Failure::Refused(format!("the demo's mails were not written: {error}"));
        loop {
            let batch = self.stream.records_after(self.position.as_deref(), MAX_STREAM_RECORDS)?;
            let last = batch["Records"].as_array().and_then(|records| records.last());
            let Some(last) = last.and_then(|record| record["dynamodb"]["SequenceNumber"].as_str()) else {
                return Ok(());
            };
            self.position = Some(last.to_owned());
            self.publisher.publish(&batch).await.map_err(|error| failure(&error))?;
            let events = std::mem::take(&mut *self.bus.0.lock().unwrap_or_else(PoisonError::into_inner));
            for event in events {
                self.notices.notify(&event).await.map_err(|error| failure(&error))?;
            }
        }
    }
}
