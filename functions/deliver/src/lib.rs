//! A Lambda function that delivers events to the merchant's webhook endpoints.
//!
//! The queue contains two kinds of messages: events and deliveries. For an event, the function creates a delivery for
//! each endpoint that subscribed to the event type. For a delivery, the function sends the event to the endpoint. A
//! delivery that must be retried stays in the queue and is invisible until the next try.
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
use delivery::{
    AllowedAddresses, DELIVERY_TIMEOUT, Deliverer, DeliveryQueue as _, FanOutResult, NextTry, QueueError, Sender,
};
use lambda_runtime::{Diagnostic, LambdaEvent};
use sqs::SqsQueue;
use store::{Table, TableConfig, TableError, load_sdk_config};

/// The longest time for which a message in the queue is made invisible. SQS allows at most 12 hours, counted from when
/// the message was received ("ChangeMessageVisibility" in the Amazon SQS API reference). A longer wait is split into
/// several steps.
const MAX_INVISIBLE: Duration = Duration::from_secs(11 * 3_600);

/// How long an event waits in the queue for its next try if some endpoints could not be read, so that no deliveries to
/// these endpoints were created.
const UNREADABLE_ENDPOINT_DELAY: Duration = Duration::from_secs(3_600);

/// The state of the function, shared by all invocations.
#[derive(Debug)]
pub struct Deliveries {
    deliverer: Deliverer,
    queue: SqsQueue,
    client: Client,
    /// The URL of the queue.
    url: String,
    clock: Arc<dyn Clock>,
}

/// The reason why the function could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("the HTTP client cannot be created: {0}")]
    Http(String),
}

/// The reason why a message could not be processed. The message stays in the queue.
#[derive(Debug, thiserror::Error)]
enum MessageError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("the message is neither an event nor a delivery")]
    UnknownMessage,
    #[error("{0} webhook endpoints cannot be read and did not receive the event")]
    UnreadableEndpoints(usize),
}

/// Creates the function's state from the environment variables `env`. `DUEDAY_DELIVERY_QUEUE` is the queue's URL.
///
/// # Errors
/// Returns an error if a variable is missing or invalid, or the HTTP client cannot be created.
pub async fn set_up(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<Deliveries, SetUpError> {
    let config = TableConfig::read(env)?;
    let sdk = load_sdk_config().await;
    let sender = Sender::new(AllowedAddresses::PublicOnly, DELIVERY_TIMEOUT)
        .map_err(|error| SetUpError::Http(error.to_string()))?;
    Ok(Deliveries::new(config.connect(&sdk), sender, clock, Client::new(&sdk), env)?)
}

/// Processes a batch of messages. The response lists the messages that must stay in the queue.
///
/// # Errors
/// Never returns an error: a failed message is listed in the response, so that the other messages of the batch are not
/// repeated.
pub async fn handle(deliveries: &Deliveries, event: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Diagnostic> {
    let mut response = SqsBatchResponse::default();
    let (mut messages, mut events, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for message in event.payload.records {
        match parse_message(&message) {
            Ok(Message::Event(event)) => {
                messages.push(message);
                events.push(*event);
            }
            Ok(Message::Delivery(key)) => keys.push((message, Ok(key))),
            Err(error) => keys.push((message, Err(error))),
        }
    }
    if let Err(error) = deliveries.create_deliveries(&events).await {
        tracing::error!(%error, "events failed and stay in the queue");
        for message in messages {
            if matches!(error, MessageError::UnreadableEndpoints(_)) {
                // Retry rarely: an operator must first repair the endpoints, and each retry adds the pending deliveries
                // of the readable endpoints to the queue again.
                deliveries.postpone_message(&message, UNREADABLE_ENDPOINT_DELAY).await;
            }
            response.add_failure(message.message_id.unwrap_or_default());
        }
    }
    for (message, key) in keys {
        let next_try = match key {
            Ok(key) => deliveries.deliverer.deliver(&key).await.map_err(MessageError::from),
            Err(error) => Err(error),
        };
        let stays_in_queue = match next_try {
            Ok(NextTry::Done) => false,
            Ok(NextTry::At(at)) => {
                let wait = (at - deliveries.clock.now()).to_std().unwrap_or_default();
                deliveries.postpone_message(&message, wait).await;
                true
            }
            Err(error) => {
                tracing::error!(%error, "a message failed and stays in the queue");
                true
            }
        };
        if stays_in_queue {
            response.add_failure(message.message_id.unwrap_or_default());
        }
    }
    Ok(response)
}

/// A message in the queue.
enum Message {
    /// An event, for which deliveries are created.
    Event(Box<ReceivedEvent>),
    /// The key of a delivery, whose event is sent to its endpoint.
    Delivery(DeliveryKey),
}

/// Parses the body of `message` as a delivery or an event.
///
/// # Errors
/// Returns an error if the body is neither. SQS then retries the message and finally moves it to the dead-letter queue,
/// where an operator can inspect it.
fn parse_message(message: &SqsMessage) -> Result<Message, MessageError> {
    let body = message.body.as_deref().unwrap_or_default();
    match serde_json::from_str(body) {
        Ok(key) => Ok(Message::Delivery(key)),
        Err(_) => match ReceivedEvent::read(body) {
            Ok(event) => Ok(Message::Event(Box::new(event))),
            Err(_) => Err(MessageError::UnknownMessage),
        },
    }
}

impl Deliveries {
    /// Creates the function's state. The deliveries are stored in `table` and sent by `sender`; `env` contains the URL
    /// of the queue, to which `client` connects.
    ///
    /// # Errors
    /// Returns an error if the variable with the queue's URL is missing or invalid.
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

    /// Creates the deliveries of `events` and adds them to the queue.
    async fn create_deliveries(&self, events: &[ReceivedEvent]) -> Result<(), MessageError> {
        if events.is_empty() {
            return Ok(());
        }
        let FanOutResult { pending, unreadable_endpoints } = self.deliverer.fan_out(events).await?;
        self.queue.send(&pending).await?;
        match unreadable_endpoints {
            0 => Ok(()),
            // The event stays in the queue. If the endpoints are repaired within four days, a retry delivers the event
            // to them; later the event is in the dead-letter queue.
            count => Err(MessageError::UnreadableEndpoints(count)),
        }
    }

    /// Makes `message` invisible for `wait`, but at most for [`MAX_INVISIBLE`]. Rounds up to the next second, so that
    /// the message does not arrive before it is due.
    async fn postpone_message(&self, message: &SqsMessage, wait: Duration) {
        let seconds = wait.min(MAX_INVISIBLE).as_secs() + u64::from(wait < MAX_INVISIBLE);
        let hide = self
            .client
            .change_message_visibility()
            .queue_url(&self.url)
            .set_receipt_handle(message.receipt_handle.clone())
            .visibility_timeout(i32::try_from(seconds).unwrap_or(i32::MAX));
        if let Err(error) = hide.send().await {
            // The message returns after the queue's default visibility timeout. The function then finds that the
            // delivery is not due yet, and postpones it again.
            tracing::warn!(error = %DisplayErrorContext(&error), "a message could not be postponed");
        }
    }
}
