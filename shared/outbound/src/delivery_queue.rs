//! The queue of deliveries, and the messages in it.

use std::fmt;

use async_trait::async_trait;
use billing::DeliveryKey;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A queue that passes each delivery to [`Deliverer::deliver`](super::Deliverer::deliver) at least once.
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

/// A message of the delivery queue: a delivery, and the time of its next try.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueuedDelivery {
    /// The delivery.
    #[serde(flatten)]
    pub key: DeliveryKey,
    /// The instant before which the delivery is not due; `None` if the delivery may be due already. Before this
    /// instant, the function need not read the stored delivery. A message that an earlier version has sent does not
    /// contain this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<DateTime<Utc>>,
}

impl From<DeliveryKey> for QueuedDelivery {
    fn from(key: DeliveryKey) -> Self {
        Self { key, not_before: None }
    }
}
