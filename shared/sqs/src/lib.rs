//! The queue of outbound webhook deliveries, in Amazon SQS.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;

use billing::DeliveryKey;
use delivery::{DeliveryQueue, QueueError};

/// The maximum number of messages in a request ("SendMessageBatch" in the Amazon SQS API reference).
const MAX_REQUEST_ENTRIES: usize = 10;

/// A queue in Amazon SQS for the deliveries of events to webhook endpoints.
#[derive(Clone, Debug)]
pub struct SqsQueue {
    client: Client,
    url: String,
}

impl SqsQueue {
    /// Creates a client of the queue at `url`.
    pub fn new(client: Client, url: String) -> Self {
        Self { client, url }
    }
}

#[async_trait]
impl DeliveryQueue for SqsQueue {
    async fn send(&self, keys: &[DeliveryKey]) -> Result<(), QueueError> {
        for keys in keys.chunks(MAX_REQUEST_ENTRIES) {
            let entry = |(index, key): (usize, &DeliveryKey)| {
                let body = serde_json::to_string(key).expect("keys can be serialized");
                let entry = SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body).build();
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
