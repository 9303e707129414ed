//! The queue of outbound webhook deliveries, in Amazon SQS.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use async_trait::async_trait;
use aws_errors::AwsRequestError;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;

use billing::DeliveryKey;
use outbound::{DeliveryQueue, QueueError};

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

/// Returns the entry of a SendMessageBatch request that sends the delivery `key`. `index` is the position of the entry in
/// the request, and becomes its id.
fn build_delivery_entry(index: usize, key: &DeliveryKey) -> SendMessageBatchRequestEntry {
    let body = serde_json::to_string(key).expect("deliveries can be serialized");
    let entry = SendMessageBatchRequestEntry::builder()
        .id(index.to_string())
        .message_body(body)
        // SQS prefers messages of endpoints with few messages in progress ("fair queues" in the SQS developer guide).
        .message_group_id(key.endpoint.to_string());
    entry.build().expect("id and body are set")
}

#[async_trait]
impl DeliveryQueue for SqsQueue {
    async fn send(&self, keys: &[DeliveryKey]) -> Result<(), QueueError> {
        for chunk in keys.chunks(MAX_REQUEST_ENTRIES) {
            let entries = chunk.iter().enumerate().map(|(index, key)| build_delivery_entry(index, key)).collect();
            let send = self.client.send_message_batch().queue_url(&self.url).set_entries(Some(entries));
            let sent = send.send().await.map_err(|error| QueueError(AwsRequestError::new(&error).to_string()))?;
            if let Some(entry) = sent.failed().first() {
                return Err(QueueError(AwsRequestError::of_code(entry.code(), entry.message()).to_string()));
            }
        }
        Ok(())
    }
}
