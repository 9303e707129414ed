//! A Lambda function that publishes the changes in a table's DynamoDB stream as events on EventBridge. The stream
//! serves as a transactional outbox, so each event is published at least once.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod event_bridge;

use aws_lambda_events::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use config::{ConfigError, Env};
use lambda_runtime::{Diagnostic, LambdaEvent};
use publishing::{EVENT_BUS, EventBus, Publisher};
use serde_json::Value;
use store::{TableConfig, load_sdk_config};

pub use event_bridge::{EventBridge, NO_WEBHOOK_ENDPOINT, REFUND_PUBLISHED_MESSAGE, WEBHOOK_ENDPOINTS};

/// Creates the publisher from the environment variables `env`. `DUEDAY_EVENT_BUS` is the name of the bus.
///
/// # Errors
/// Returns an error if a variable is missing or invalid.
pub async fn set_up_publisher(env: Env<'_>) -> Result<Publisher<EventBridge>, ConfigError> {
    let (bus, config) = (env.required_text(&EVENT_BUS)?, TableConfig::read(env)?);
    let sdk = load_sdk_config().await;
    let client = aws_sdk_eventbridge::Client::new(&sdk);
    Ok(Publisher::new(EventBridge::new(client, bus, config.connect(&sdk))))
}

/// Publishes a batch of stream records. The response contains the first record that was not published: Lambda then
/// retries this record and all later records.
///
/// # Errors
/// Returns an error of the type `Batch` if the input is not a batch of a DynamoDB stream
/// ([`publishing::StreamBatchError`]).
pub async fn publish_stream_records(
    publisher: &Publisher<impl EventBus>,
    event: LambdaEvent<Value>,
) -> Result<DynamoDbEventResponse, Diagnostic> {
    let published = publisher.publish(&event.payload).await;
    let published =
        published.map_err(|error| Diagnostic { error_type: "Batch".to_owned(), error_message: error.to_string() })?;
    let mut response = DynamoDbEventResponse::default();
    if let Some(first) = published.first_unpublished {
        let mut failure = DynamoDbBatchItemFailure::default();
        failure.item_identifier = Some(first);
        response.batch_item_failures.push(failure);
    }
    Ok(response)
}
