//! A Lambda function that delivers events to the merchant's webhook endpoints.
//!
//! The queue contains two kinds of messages: events and deliveries. For an event, the function creates a delivery for
//! each endpoint that subscribed to the event type. For a delivery, the function sends the event to the endpoint.
//!
//! A delivery that must be retried is added to a list in the table, and the received message is deleted. Each minute, a
//! schedule invokes the function to send the due deliveries to the queue. So a chain has at most two messages: an event causes
//! its deliveries, and a delivery causes none. Lambda stops longer chains of messages between a queue and
//! a function (recursive loop detection). A waiting message would be no alternative, because it is in flight, and SQS
//! allows only about 120,000 messages in flight.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod batch;

use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_sqs::Client;
use billing::ReceivedEvent;
use clock::Clock;
use config::{ConfigError, Env, SECRET_UNREADABLE};
use lambda_runtime::{Diagnostic, LambdaEvent};
use outbound::{
    AllowedAddresses, DELIVERY_QUEUE, DELIVERY_TIMEOUT, Deliverer, DeliveryQueue as _, QueueError, SendDueError,
    WebhookSender,
};
use serde::Deserialize;
use sqs::SqsQueue;
use store::{TableConfig, TableError, load_sdk_config};

use batch::DeliveryBatch;

/// The payload of an invocation of the Lambda function.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum DeliverRequest {
    /// Messages from the queue.
    Queue(SqsEvent),
    /// The request of the schedule to send deliveries to the queue.
    Send {
        /// The deliveries to send.
        send: DeliveriesToSend,
    },
}

/// The deliveries that the schedule requests to send to the queue.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveriesToSend {
    /// The waiting deliveries whose next try is due.
    Due,
}

/// The state of the function, shared by all invocations.
#[derive(Debug)]
pub struct DeliveryHandler {
    deliverer: Deliverer,
    queue: SqsQueue,
    clock: Arc<dyn Clock>,
}

/// The reason why the function could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum DeliverSetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("the HTTP client cannot be created: {0}")]
    Http(String),
}

/// The reason why a message could not be processed. The message stays in the queue.
#[derive(Debug, thiserror::Error)]
enum DeliverMessageError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl DeliverMessageError {
    /// Returns the name of the error, which the log contains as `error_type`.
    fn error_type(&self) -> &'static str {
        match self {
            Self::Table(_) => "Table",
            Self::Queue(_) => "Queue",
        }
    }
}

/// Creates the function's state from the environment variables `env`. `DUEDAY_DELIVERY_QUEUE` is the queue's URL.
///
/// # Errors
/// Returns an error if a variable is missing or invalid, the encryption keys cannot be read, or the HTTP client cannot
/// be created.
pub async fn set_up_delivery_handler(
    env: Env<'_>,
    clock: Arc<dyn Clock>,
) -> Result<DeliveryHandler, DeliverSetUpError> {
    let config = TableConfig::read(env)?;
    let sdk = load_sdk_config().await;
    let keys = secrets::read_encryption_keys(env, &sdk).await;
    let keys = keys.inspect_err(|error| tracing::error!(%error, error_type = "Secret", "{SECRET_UNREADABLE}"))?;
    let sender = WebhookSender::new(AllowedAddresses::PublicOnly, DELIVERY_TIMEOUT)
        .map_err(|error| DeliverSetUpError::Http(error.to_string()))?;
    let deliverer = Deliverer::new(config.connect(&sdk), sender, keys, clock.clone());
    let queue = SqsQueue::new(Client::new(&sdk), env.required_text(&DELIVERY_QUEUE)?);
    Ok(DeliveryHandler::new(deliverer, queue, clock))
}

/// Handles one invocation of the function. The response lists the messages that must stay in the queue.
///
/// # Errors
/// Only a request of the schedule can fail: if a due delivery could not be sent to the queue. A failed message is listed in
/// the response instead, so that the other messages of the batch are not repeated.
pub async fn handle_deliver_invocation(
    deliveries: &DeliveryHandler,
    event: LambdaEvent<DeliverRequest>,
) -> Result<SqsBatchResponse, Diagnostic> {
    let queue = match event.payload {
        DeliverRequest::Queue(queue) => queue,
        DeliverRequest::Send { send: DeliveriesToSend::Due } => {
            return match deliveries.deliverer.send_due(&deliveries.queue).await {
                Ok(_) => Ok(SqsBatchResponse::default()),
                Err(errors) => {
                    for error in &errors {
                        tracing::error!(%error, error_type = error.error_type(), "due deliveries could not be sent to the queue");
                    }
                    let failed = format!("due deliveries could not be sent to the queue: {} errors", errors.len());
                    let error_type = errors.first().map_or("Table", SendDueError::error_type);
                    Err(Diagnostic { error_type: error_type.to_owned(), error_message: failed })
                }
            };
        }
    };
    let mut response = SqsBatchResponse::default();
    let batch = DeliveryBatch::read(queue.records);
    let mut failed = batch.unknown_message_ids;
    if let Err(error) = deliveries.create_deliveries(&batch.events).await {
        tracing::error!(%error, error_type = error.error_type(), "events failed and stay in the queue");
        failed.extend(batch.event_message_ids);
    }
    failed.extend(deliveries.try_deliveries(batch.deliveries).await);
    failed.into_iter().for_each(|id| response.add_failure(id));
    Ok(response)
}

impl DeliveryHandler {
    /// Creates the function's state. `deliverer` tries the deliveries; `queue` contains the deliveries that are due.
    pub fn new(deliverer: Deliverer, queue: SqsQueue, clock: Arc<dyn Clock>) -> Self {
        Self { deliverer, queue, clock }
    }

    /// Creates a delivery of each event in `events` for each webhook endpoint that subscribed to its type, and adds the
    /// deliveries to the queue of deliveries.
    async fn create_deliveries(&self, events: &[ReceivedEvent]) -> Result<(), DeliverMessageError> {
        if events.is_empty() {
            return Ok(());
        }
        let pending = self.deliverer.fan_out(events).await?;
        self.queue.send(&pending).await?;
        Ok(())
    }
}
