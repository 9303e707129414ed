//! The delivery queue on AWS.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;

use billing::DeliveryKey;
use delivery::{DeliveryQueue, QueueError};

/// As many messages as a request may have ("SendMessageBatch" in the Amazon SQS API reference).
const MOST_ENTRIES: usize = 10;

/// An SQS queue.
#[derive(Clone, Debug)]
pub struct SqsQueue {
    client: Client,
    url: String,
}

impl SqsQueue {
    /// The queue at `url`.
    pub fn new(client: Client, url: String) -> Self {
        Self { client, url }
    }
}

#[async_trait]
impl DeliveryQueue for SqsQueue {
    async fn send(&self, keys: &[DeliveryKey]) -> Result<(), QueueError> {
        for keys in keys.chunks(MOST_ENTRIES) {
            let entry = |(place, key): (usize, &DeliveryKey)| {
                let body = serde_json::to_string(key).expect("keys are representable");
                let entry = SendMessageBatchRequestEntry::builder().id(place.to_string()).message_body(body).build();
                entry.expect("id and body are set")
            };
            let entries = keys.iter().enumerate().map(entry).collect();
            let sent = self.client.send_message_batch().queue_url(&self.url).set_entries(Some(entries)).send().await;
            let sent = sent.map_err(|error| QueueError(DisplayErrorContext(&error).to_string()))?;
            if let Some(failed) = sent.failed().first() {
                return Err(QueueError(failed.code().to_owned()));
            }
        }
        Ok(())
    }
}
