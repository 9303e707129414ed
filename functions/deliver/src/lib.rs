//! Events delivered to the merchant's webhook endpoints.
//!
//! Two kinds of messages come from one queue: an event, of which a delivery is made for each endpoint that wants it, and a
//! delivery, which is tried. One that is to be tried again stays in the queue, invisible until then.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::DisplayErrorContext;
use billing::{DeliveryKey, ReceivedEvent};
use clock::Clock;
use config::{ConfigError, Env};
use delivery::DELIVERY_QUEUE;
use delivery::{Deliverer, DeliveryQueue as _, FannedOut, Next, QueueError, Reach, Sender, TIMEOUT};
use lambda_runtime::{Diagnostic, LambdaEvent};
use sqs::SqsQueue;
use store::{Table, TableConfig, TableError, sdk};

/// A message is invisible for 12 hours at most, counted from when it was received ("ChangeMessageVisibility" in the Amazon
/// SQS API reference). One that is to wait longer than this wakes and waits again.
const LONGEST_WAIT: Duration = Duration::from_secs(11 * 3_600);

/// An event that some endpoints lack, because they cannot be read, comes again after so long.
const UNTIL_MENDED: Duration = Duration::from_secs(3_600);

/// What an invocation needs.
#[derive(Debug)]
pub struct Deliveries {
    deliverer: Deliverer,
    queue: SqsQueue,
    client: Client,
    url: String,
    clock: Arc<dyn Clock>,
}

/// Why the function could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("an HTTP client cannot be made: {0}")]
    Http(String),
}

/// Why a message could not be worked on. It comes again.
#[derive(Debug, thiserror::Error)]
enum MessageError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("a message is neither an event nor a delivery")]
    Unknown,
    #[error("{0} webhook endpoints cannot be read, and lack the event")]
    Unreadable(usize),
}

/// The function as its environment describes it. `DUEDAY_DELIVERY_QUEUE` is the queue's URL.
///
/// # Errors
/// [`SetUpError`].
pub async fn set_up(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<Deliveries, SetUpError> {
    let config = TableConfig::read(env)?;
    let sdk = sdk().await;
    let sender = Sender::new(Reach::Public, TIMEOUT).map_err(|error| SetUpError::Http(error.to_string()))?;
    Ok(Deliveries::new(config.over(&sdk), sender, clock, Client::new(&sdk), env)?)
}

/// One invocation. The answer names the messages that are to come again.
///
/// # Errors
/// None: what goes wrong with one message is no reason to hand over the others again.
pub async fn handle(deliveries: &Deliveries, event: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Diagnostic> {
    let mut answer = SqsBatchResponse::default();
    let (mut messages, mut events, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for message in event.payload.records {
        match parse(&message) {
            Ok(Message::Event(event)) => {
                messages.push(message);
                events.push(*event);
            }
            Ok(Message::Delivery(key)) => keys.push((message, Ok(key))),
            Err(error) => keys.push((message, Err(error))),
        }
    }
    if let Err(error) = deliveries.fan_out(&events).await {
        tracing::error!(%error, "events come again");
        for message in messages {
            if matches!(error, MessageError::Unreadable(_)) {
                // Somebody must mend it first, and each time the other endpoints' messages are sent again.
                deliveries.postpone(&message, UNTIL_MENDED).await;
            }
            answer.add_failure(message.message_id.unwrap_or_default());
        }
    }
    for (message, key) in keys {
        let next = match key {
            Ok(key) => deliveries.deliverer.deliver(&key).await.map_err(MessageError::from),
            Err(error) => Err(error),
        };
        let comes_again = match next {
            Ok(Next::Done) => false,
            Ok(Next::At(then)) => {
                let wait = (then - deliveries.clock.now()).to_std().unwrap_or_default();
                deliveries.postpone(&message, wait).await;
                true
            }
            Err(error) => {
                tracing::error!(%error, "a message comes again");
                true
            }
        };
        if comes_again {
            answer.add_failure(message.message_id.unwrap_or_default());
        }
    }
    Ok(answer)
}

/// A message of the queue.
enum Message {
    Event(Box<ReceivedEvent>),
    Delivery(DeliveryKey),
}

/// Reads `message`. A message that is neither comes again until it is in the dead-letter queue, where a person looks.
fn parse(message: &SqsMessage) -> Result<Message, MessageError> {
    let body = message.body.as_deref().unwrap_or_default();
    match serde_json::from_str(body) {
        Ok(key) => Ok(Message::Delivery(key)),
        Err(_) => match ReceivedEvent::read(body) {
            Ok(event) => Ok(Message::Event(Box::new(event))),
            Err(_) => Err(MessageError::Unknown),
        },
    }
}

impl Deliveries {
    /// Deliveries that are kept in `table`, sent by `sender`, and wait in the queue that `env` names.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn new(
        table: Table,
        sender: Sender,
        clock: Arc<dyn Clock>,
        client: Client,
        env: Env<'_>,
    ) -> Result<Self, ConfigError> {
        let url = env.text(&DELIVERY_QUEUE)?;
        let deliverer = Deliverer::new(table, sender, clock.clone());
        Ok(Self { deliverer, queue: SqsQueue::new(client.clone(), url.clone()), client, url, clock })
    }

    /// Creates the deliveries of `events`, and puts them into the queue.
    async fn fan_out(&self, events: &[ReceivedEvent]) -> Result<(), MessageError> {
        if events.is_empty() {
            return Ok(());
        }
        let FannedOut { pending, unreadable_endpoints } = self.deliverer.fan_out(events).await?;
        self.queue.send(&pending).await?;
        match unreadable_endpoints {
            0 => Ok(()),
            // Mended within four days, they have it when it comes again; later it is among the lost ones.
            some => Err(MessageError::Unreadable(some)),
        }
    }

    /// Hides `message` for `wait`, and a moment more: it is not to come just before its time.
    async fn postpone(&self, message: &SqsMessage, wait: Duration) {
        let seconds = wait.min(LONGEST_WAIT).as_secs() + u64::from(wait < LONGEST_WAIT);
        let hide = self
            .client
            .change_message_visibility()
            .queue_url(&self.url)
            .set_receipt_handle(message.receipt_handle.clone())
            .visibility_timeout(i32::try_from(seconds).unwrap_or(i32::MAX));
        if let Err(error) = hide.send().await {
            // It comes when the queue's own time is over, finds that it is early, and waits again.
            tracing::warn!(error = %DisplayErrorContext(&error), "a message comes early");
        }
    }
}
