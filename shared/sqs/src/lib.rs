//! The queue of outbound webhook deliveries, in Amazon SQS.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use async_trait::async_trait;
use aws_errors::AwsRequestError;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use chrono::{DateTime, Utc};

use billing::DeliveryKey;
use outbound::{DeliveryQueue, QueueError, QueuedDelivery};

/// The maximum number of messages in a request ("SendMessageBatch" in the Amazon SQS API reference).
const MAX_REQUEST_ENTRIES: usize = 10;
/// The longest time for which SQS delays a message ("DelaySeconds" in the Amazon SQS API reference).
const MAX_DELAY_SECONDS: i64 = 900;

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

    /// Sends `deliveries` to the queue. A delivery that is not due at `now` arrives when it is due, but after 15
    /// minutes at the latest, because SQS does not allow a longer delay. Returns one error for each delivery that the
    /// queue did not accept, with the index of the delivery.
    pub async fn send_delayed(&self, deliveries: &[QueuedDelivery], now: DateTime<Utc>) -> Vec<(usize, QueueError)> {
        let mut failed = Vec::new();
        for (chunk, first) in deliveries.chunks(MAX_REQUEST_ENTRIES).zip((0..).step_by(MAX_REQUEST_ENTRIES)) {
            let entries =
                chunk.iter().enumerate().map(|(index, delivery)| request_entry(index, delivery, now)).collect();
            let send = self.client.send_message_batch().queue_url(&self.url).set_entries(Some(entries));
            match send.send().await {
                Ok(sent) => failed.extend(sent.failed().iter().map(|entry| {
                    let index: usize = entry.id().parse().unwrap_or_default();
                    (first + index, QueueError(AwsRequestError::of_code(entry.code(), entry.message()).to_string()))
                })),
                Err(error) => {
                    let error = QueueError(AwsRequestError::new(&error).to_string());
                    failed.extend((0..chunk.len()).map(|index| (first + index, error.clone())));
                }
            }
        }
        failed
    }
}

/// Returns the entry of a SendMessageBatch request that sends `delivery`. `index` is the position of the entry in the
/// request, and becomes its id.
fn request_entry(index: usize, delivery: &QueuedDelivery, now: DateTime<Utc>) -> SendMessageBatchRequestEntry {
    let body = serde_json::to_string(delivery).expect("deliveries can be serialized");
    let entry = SendMessageBatchRequestEntry::builder()
        .id(index.to_string())
        .message_body(body)
        // SQS prefers messages of endpoints with few messages in progress ("fair queues" in the SQS developer guide).
        .message_group_id(delivery.key.endpoint.to_string())
        .set_delay_seconds(delivery.not_before.map(|then| delay_seconds(then, now)));
    entry.build().expect("id and body are set")
}

/// Returns the seconds from `now` to `then`, rounded up, so that the message does not arrive too early.
fn delay_seconds(then: DateTime<Utc>, now: DateTime<Utc>) -> i32 {
    let milliseconds = (then - now).num_milliseconds().max(0);
    let seconds = (milliseconds / 1_000 + i64::from(milliseconds % 1_000 > 0)).min(MAX_DELAY_SECONDS);
    i32::try_from(seconds).unwrap_or_default()
}

#[async_trait]
impl DeliveryQueue for SqsQueue {
    async fn send(&self, keys: &[DeliveryKey]) -> Result<(), QueueError> {
        let deliveries: Vec<QueuedDelivery> = keys.iter().cloned().map(QueuedDelivery::from).collect();
        match self.send_delayed(&deliveries, DateTime::UNIX_EPOCH).await.into_iter().next() {
            None => Ok(()),
            Some((_, error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn delay_of_a_queued_delivery_is_rounded_up_and_at_most_15_minutes() {
        let now = DateTime::UNIX_EPOCH;
        for (milliseconds, expected) in
            [(-5_000, 0), (0, 0), (1, 1), (1_000, 1), (1_001, 2), (899_001, 900), (7_200_000, 900)]
        {
            assert_eq!(delay_seconds(now + TimeDelta::milliseconds(milliseconds), now), expected, "{milliseconds}");
        }
    }
}
