//! The table's stream, turned into events on a bus: what was written is the outbox, and everything is told at least once.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod event_bridge;

use aws_lambda_events::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use config::{ConfigError, Env};
use delivery::{Bus, EVENT_BUS, Publisher};
use lambda_runtime::{Diagnostic, LambdaEvent};
use serde_json::Value;
use store::sdk;

pub use event_bridge::EventBridge;

/// The function as its environment describes it. `DUEDAY_EVENT_BUS` is the bus.
///
/// # Errors
/// [`ConfigError`].
pub async fn set_up(env: Env<'_>) -> Result<Publisher<EventBridge>, ConfigError> {
    let bus = env.text(&EVENT_BUS)?;
    let client = aws_sdk_eventbridge::Client::new(&sdk().await);
    Ok(Publisher::new(EventBridge::new(client, bus)))
}

/// One invocation. The answer names the first record that was not published: Lambda hands it over again, and all after it.
///
/// # Errors
/// A [`delivery::BatchError`], under its own name.
pub async fn publish(
    publisher: &Publisher<impl Bus>,
    event: LambdaEvent<Value>,
) -> Result<DynamoDbEventResponse, Diagnostic> {
    let published = publisher.publish(&event.payload).await;
    let published =
        published.map_err(|error| Diagnostic { error_type: "Batch".to_owned(), error_message: error.to_string() })?;
    let mut answer = DynamoDbEventResponse::default();
    if let Some(first) = published.not_published_from {
        let mut failure = DynamoDbBatchItemFailure::default();
        failure.item_identifier = Some(first);
        answer.batch_item_failures.push(failure);
    }
    Ok(answer)
}
