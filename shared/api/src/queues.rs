//! The queues of a deployment, whose numbers of messages `GET /status` and `dueday status` show.

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

/// The number of messages of a queue in Amazon SQS that are due.
const DUE: &str = "ApproximateNumberOfMessages";
/// The number of messages of a queue in Amazon SQS that are delayed.
const DELAYED: &str = "ApproximateNumberOfMessagesDelayed";
/// The number of messages of a queue in Amazon SQS that a function has received and not deleted.
const IN_PROGRESS: &str = "ApproximateNumberOfMessagesNotVisible";
/// The dead-letter queue of a queue in Amazon SQS.
const REDRIVE_POLICY: &str = "RedrivePolicy";
/// The queue of the template with the heartbeats of the system. Nothing reads it, and its messages need no person: an alarm
/// watches their arrival.
pub const QUEUE_OF_HEARTBEATS: &str = "Heartbeats";
/// The attributes of a queue in Amazon SQS that [`QueueState::from_sqs_attributes`] reads ("GetQueueAttributes" in the Amazon SQS API
/// reference).
pub const SQS_ATTRIBUTES: [&str; 4] = [DUE, DELAYED, IN_PROGRESS, REDRIVE_POLICY];

impl QueueState {
    /// Returns the state of the queue `name` in Amazon SQS. `attribute` must return the value of an attribute. The numbers are
    /// approximate.
    ///
    /// # Errors
    /// An error message, if an attribute with a number is missing or not a number.
    pub fn from_sqs_attributes<'a>(name: &str, attribute: impl Fn(&str) -> Option<&'a str>) -> Result<Self, String> {
        let number = |name: &str| {
            let text = attribute(name).unwrap_or_default();
            text.parse::<u64>().map_err(|error| format!("{name} is {text:?}: {error}"))
        };
        Ok(Self {
            name: name.to_owned(),
            waiting: Some(number(DUE)?.saturating_add(number(DELAYED)?)),
            in_progress: Some(number(IN_PROGRESS)?),
            // A queue without a redrive policy is a dead-letter queue. SQS moves messages to it from the other queues
            // if their processing failed repeatedly.
            keeps_failed_messages: Some(attribute(REDRIVE_POLICY).is_none()),
        })
    }

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
