//! The queues of a deployment, whose numbers of messages `GET /status` shows.

use async_trait::async_trait;
use delivery::QueueError;
use serde::Serialize;
use utoipa::ToSchema;

/// A queue, and about how many messages it contains.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[schema(as = Queue)]
pub struct QueueState {
    /// The name of the queue in `template.yaml`, such as `Deliveries`.
    pub name: String,
    /// The number of messages that wait: those that are due, and those that are delayed.
    pub waiting: u64,
    /// The number of messages that a function is processing, or that it will get again because it failed.
    pub in_progress: u64,
    /// Whether the queue is a dead-letter queue: it stores messages that could not be processed. No function
    /// reads this queue, so a person must look at its messages.
    pub keeps_failed_messages: bool,
}

/// Reads the state of the queues of a deployment.
#[async_trait]
pub trait Queues: std::fmt::Debug + Send + Sync {
    /// Returns the state of each queue.
    ///
    /// # Errors
    /// [`QueueError`] if the state of a queue cannot be read.
    async fn read(&self) -> Result<Vec<QueueState>, QueueError>;
}

impl QueueState {
    /// Returns a sentence about messages in this queue that an operator must look at; `None` if there are none.
    pub(crate) fn problem(&self) -> Option<String> {
        let Self { name, waiting, in_progress, keeps_failed_messages } = self;
        let messages = waiting.saturating_add(*in_progress);
        (*keeps_failed_messages && messages > 0)
            .then(|| format!("messages in the queue {name} that could not be processed: {messages}"))
    }
}
