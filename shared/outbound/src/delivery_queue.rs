//! The queue of deliveries.

use std::fmt;

use async_trait::async_trait;
use billing::DeliveryKey;

/// A queue that passes each delivery to [`Deliverer::deliver`](super::Deliverer::deliver) at least once. In SQS, the body
/// of a message is the JSON of a [`DeliveryKey`].
#[async_trait]
pub trait DeliveryQueue: Send + Sync + fmt::Debug {
    /// Adds the deliveries `keys` to the queue, to be tried at once.
    ///
    /// # Errors
    /// Returns an error if the queue did not accept all deliveries. Some of the deliveries may be in the queue
    /// nevertheless.
    async fn send(&self, keys: &[DeliveryKey]) -> Result<(), QueueError>;
}

/// The error of a delivery queue that did not accept a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the delivery queue did not accept a message: {0}")]
pub struct QueueError(pub String);
