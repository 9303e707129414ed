//! Reads the queue messages of one invocation, and tries the deliveries that the messages contain.

use std::collections::BTreeMap;

use aws_lambda_events::sqs::SqsMessage;
use billing::{DeliveryKey, ReceivedEvent};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use outbound::{ConcurrencyLimits, DeliveryScheduler, NextTryTime};
use store::WaitingDelivery;

use crate::DeliveryHandler;

/// The largest numbers of deliveries in progress in one invocation. A batch has at most ten messages.
const CONCURRENCY_LIMITS: ConcurrencyLimits = ConcurrencyLimits { per_endpoint: 4, total: 10 };

/// The messages of one invocation.
#[derive(Default)]
pub struct DeliveryBatch {
    /// The events, for which deliveries are created.
    pub events: Vec<ReceivedEvent>,
    /// The ids of the messages that contain `events`.
    pub event_message_ids: Vec<String>,
    /// The deliveries to try, each with the id of the message that contains it.
    pub deliveries: Vec<(String, DeliveryKey)>,
    /// The ids of the messages that are neither an event nor a delivery. SQS retries them and finally moves them to the
    /// dead-letter queue, where an operator can inspect them.
    pub unknown_message_ids: Vec<String>,
}

impl DeliveryBatch {
    /// Reads `messages`, and sorts them into events, deliveries and unknown messages.
    pub fn read(messages: Vec<SqsMessage>) -> Self {
        let mut batch = Self::default();
        for message in messages {
            let (id, body) = (message.message_id.unwrap_or_default(), message.body.unwrap_or_default());
            if let Ok(delivery) = serde_json::from_str(&body) {
                batch.deliveries.push((id, delivery));
            } else if let Ok(event) = ReceivedEvent::read(&body) {
                batch.events.push(event);
                batch.event_message_ids.push(id);
            } else {
                tracing::error!("a message is neither an event nor a delivery and stays in the queue");
                batch.unknown_message_ids.push(id);
            }
        }
        batch
    }
}

impl DeliveryHandler {
    /// Tries the due deliveries, several at a time, and adds the deliveries that must wait to the list in the table. Each
    /// of `deliveries` has the id of its message. Returns the ids of the messages that must stay in the queue.
    pub(crate) async fn try_deliveries(&self, deliveries: Vec<(String, DeliveryKey)>) -> Vec<String> {
        let now = self.clock.now();
        let (mut schedule, mut ids) =
            (DeliveryScheduler::new(CONCURRENCY_LIMITS), BTreeMap::<DeliveryKey, Vec<String>>::new());
        for (id, key) in deliveries {
            schedule.add(now, key.clone());
            ids.entry(key).or_default().push(id);
        }
        let (mut in_progress, mut failed) = (FuturesUnordered::new(), Vec::new());
        loop {
            // `now` is the start of the invocation: a delivery that becomes due later is added to the list below, and a
            // later invocation tries it.
            while let Some(key) = schedule.start_next(now) {
                in_progress.push(async {
                    let next_try = self.deliverer.deliver(&key).await;
                    (key, next_try)
                });
            }
            let Some((key, next_try)) = in_progress.next().await else { break };
            let next_try = next_try.unwrap_or_else(|error| {
                tracing::error!(%error, error_type = "Table", "a message failed and stays in the queue");
                failed.extend(ids.remove(&key).unwrap_or_default());
                NextTryTime::Done
            });
            // `now` is fixed, so a delivery that must wait is not started again.
            schedule.finish(key, next_try);
        }
        let waiting = schedule.take_waiting().into_iter();
        let waiting: Vec<_> = waiting
            .map(|(next_try_at, delivery)| WaitingDelivery { delivery, next_try_at, id: self.clock.ulid() })
            .collect();
        for index in self.deliverer.add_waiting(&waiting).await {
            failed.extend(waiting.get(index).and_then(|one| ids.remove(&one.delivery)).unwrap_or_default());
        }
        failed
    }
}
