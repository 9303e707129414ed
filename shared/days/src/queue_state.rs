//! The state of a queue of a deployment, with the problem that a person must look at.

use chrono::{DateTime, Utc};
use serde::Serialize;

/// A queue, and about how many messages it contains. The numbers are null if the queue could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Queue))]
pub struct QueueState {
    /// The name of the queue in `template.yaml`, such as `Deliveries`.
    pub name: String,
    /// The number of messages that wait: the due and the delayed messages. On AWS, a webhook delivery that waits for its next
    /// try is in the table, and is not counted. Null if the queue could not be read.
    pub waiting: Option<u64>,
    /// The number of messages that a function is processing, or that a function will receive again because its
    /// processing failed. Null if the queue could not be read.
    pub in_progress: Option<u64>,
    /// Whether the queue is a dead-letter queue: it stores messages that could not be processed. No function reads this queue, so
    /// a person must look at its messages. Null if the queue could not be read.
    pub keeps_failed_messages: Option<bool>,
    /// The time of the oldest message, if it has waited for more than three hours. Null if no message has waited so long, and
    /// on AWS, where alarms check the age of the messages.
    pub late_since: Option<DateTime<Utc>>,
    /// The reason why the queue could not be read; `None` if it was read, or if the reason is only logged.
    #[serde(skip)]
    pub read_error: Option<String>,
}

/// The attribute of an Amazon SQS queue with the number of messages that are due.
const DUE_ATTRIBUTE: &str = "ApproximateNumberOfMessages";
/// The attribute of an Amazon SQS queue with the number of messages that are delayed.
const DELAYED_ATTRIBUTE: &str = "ApproximateNumberOfMessagesDelayed";
/// The attribute of an Amazon SQS queue with the number of messages that a function has received and not deleted.
const IN_PROGRESS_ATTRIBUTE: &str = "ApproximateNumberOfMessagesNotVisible";
/// The attribute of an Amazon SQS queue that names its dead-letter queue. A dead-letter queue lacks this attribute.
const REDRIVE_POLICY_ATTRIBUTE: &str = "RedrivePolicy";
/// The name of the queue in `template.yaml` that contains the heartbeats of the system. No function reads this queue,
/// and no person must look at its messages: an alarm checks that they arrive.
pub const QUEUE_OF_HEARTBEATS: &str = "Heartbeats";
/// The attributes of an Amazon SQS queue that [`QueueState::from_sqs_attributes`] reads ("GetQueueAttributes" in the
/// Amazon SQS API reference).
pub const SQS_ATTRIBUTES: [&str; 4] =
    [DUE_ATTRIBUTE, DELAYED_ATTRIBUTE, IN_PROGRESS_ATTRIBUTE, REDRIVE_POLICY_ATTRIBUTE];

impl QueueState {
    /// Returns the state of the queue `name` in Amazon SQS. `attribute` must return the value of the attribute with the
    /// given name. The numbers are approximate.
    ///
    /// # Errors
    /// An error message, if an attribute that must be a number is missing or not a number.
    pub fn from_sqs_attributes<'a>(name: &str, attribute: impl Fn(&str) -> Option<&'a str>) -> Result<Self, String> {
        let number = |name: &str| {
            let text = attribute(name).unwrap_or_default();
            text.parse::<u64>().map_err(|error| format!("{name} is {text:?}: {error}"))
        };
        Ok(Self {
            name: name.to_owned(),
            waiting: Some(number(DUE_ATTRIBUTE)?.saturating_add(number(DELAYED_ATTRIBUTE)?)),
            in_progress: Some(number(IN_PROGRESS_ATTRIBUTE)?),
            // A queue without a redrive policy is a dead-letter queue: if the processing of a message in another queue
            // failed repeatedly, SQS moves the message to this queue.
            keeps_failed_messages: Some(attribute(REDRIVE_POLICY_ATTRIBUTE).is_none()),
            late_since: None,
            read_error: None,
        })
    }

    /// Returns the unknown state of the queue `name`, which could not be read.
    pub fn unknown(name: String) -> Self {
        let (late_since, read_error) = (None, None);
        Self { name, waiting: None, in_progress: None, keeps_failed_messages: None, late_since, read_error }
    }

    /// Returns a sentence about the problem of this queue: the queue could not be read, or it contains messages that
    /// could not be processed or that have waited for too long. `None` if there is no problem.
    pub fn problem(&self) -> Option<String> {
        let Self { name, waiting, in_progress, keeps_failed_messages, late_since, read_error } = self;
        let (Some(waiting), Some(in_progress), Some(keeps_failed_messages)) =
            (waiting, in_progress, keeps_failed_messages)
        else {
            let because = read_error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            return Some(format!("the queue {name} could not be read{because}"));
        };
        let messages = waiting.saturating_add(*in_progress);
        if *keeps_failed_messages && messages > 0 {
            return Some(format!("messages in the queue {name} that could not be processed: {messages}"));
        }
        let since = late_since.as_ref()?.format("%Y-%m-%d %H:%M UTC");
        Some(format!("messages in the queue {name}: {messages}; the oldest has waited since {since}"))
    }
}
