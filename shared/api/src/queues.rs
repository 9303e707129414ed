//! The queues of a deployment, whose numbers of messages `GET /status` shows.

use async_trait::async_trait;
use serde::Serialize;
use utoipa::ToSchema;

/// A queue, and about how many messages it contains. The numbers are null if the queue could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[schema(as = Queue)]
pub struct QueueState {
    /// The name of the queue in `template.yaml`, such as `Deliveries`.
    pub name: String,
    /// The number of messages that wait: those that are due, and those that are delayed. Null if the queue could not be read.
    pub waiting: Option<u64>,
    /// The number of messages that a function is processing, or that it will get again because it failed. Null if the queue could
    /// not be read.
    pub in_progress: Option<u64>,
    /// Whether the queue is a dead-letter queue: it stores messages that could not be processed. No function reads this queue, so
    /// a person must look at its messages. Null if the queue could not be read.
    pub keeps_failed_messages: Option<bool>,
}

/// Reads the state of the queues of a deployment: from Amazon SQS, or, on one machine, from the table and the data folder.
#[async_trait]
pub trait Queues: std::fmt::Debug + Send + Sync {
    /// Returns the state of each queue. The state of a queue that could not be read is unknown, and does not prevent reading the
    /// others.
    async fn read(&self) -> Vec<QueueState>;
}

impl QueueState {
    /// Returns the unknown state of the queue `name`, which could not be read.
    pub fn unknown(name: String) -> Self {
        Self { name, waiting: None, in_progress: None, keeps_failed_messages: None }
    }

    /// Returns a sentence about messages in this queue that an operator must look at; `None` if there are none.
    pub fn problem(&self) -> Option<String> {
        let Self { name, waiting, in_progress, keeps_failed_messages } = self;
        let (Some(waiting), Some(in_progress), Some(keeps_failed_messages)) =
            (waiting, in_progress, keeps_failed_messages)
        else {
            return Some(format!("the queue {name} could not be read"));
        };
        let messages = waiting.saturating_add(*in_progress);
        (*keeps_failed_messages && messages > 0)
            .then(|| format!("messages in the queue {name} that could not be processed: {messages}"))
    }
}
