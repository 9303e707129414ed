//! A delivery queue for tests.

use async_trait::async_trait;
use billing::DeliveryKey;
use delivery::{DeliveryQueue, QueueError};

/// Takes deliveries, and nobody reads it.
#[derive(Clone, Copy, Debug)]
pub struct UnreadQueue;

#[async_trait]
impl DeliveryQueue for UnreadQueue {
    async fn send(&self, _: &[DeliveryKey]) -> Result<(), QueueError> {
        Ok(())
    }
}
