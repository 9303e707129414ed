//! The reader of the queues of a deployment, for `GET /status` and `dueday status`.

use async_trait::async_trait;
use days::QueueState;

/// Reads the state of the queues of a deployment: from Amazon SQS or, in a local installation, from the table and the
/// data folder.
#[async_trait]
pub trait QueueStateReader: std::fmt::Debug + Send + Sync {
    /// Returns the state of each queue. If a queue cannot be read, its state is [`QueueState::unknown`], and the other
    /// queues are read nevertheless.
    async fn read_queue_states(&self) -> Vec<QueueState>;
}
