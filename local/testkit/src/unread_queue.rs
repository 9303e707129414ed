//! A delivery queue that ignores its messages.

use async_trait::async_trait;
use billing::DeliveryKey;
use outbound::{DeliveryQueue, QueueError};

/// A delivery queue that accepts deliveries and drops them.
#[derive(Clone, Copy, Debug)]
pub struct UnreadQueue;

#[async_trait]
impl DeliveryQueue for UnreadQueue {
    async fn send(&self, _: &[DeliveryKey]) -> Result<(), QueueError> {
        Ok(())
    }
}
