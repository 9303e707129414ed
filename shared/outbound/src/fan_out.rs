//! Creates the deliveries of events for the webhook endpoints that subscribed to them.

use billing::{Delivery, DeliveryKey, DeliveryStatus, ReceivedEvent};
use store::TableError;

use super::Deliverer;
use super::log_messages::{DELIVERY_UNREADABLE, ENDPOINT_UNREADABLE};

impl Deliverer {
    /// Creates a delivery of each of `events` for each endpoint that subscribed to the event type, and returns the
    /// pending deliveries. A delivery that already exists is not created again. Sends one Query for the endpoints, then
    /// one PutItem for each delivery.
    ///
    /// A delivery is also created for an endpoint whose item cannot be read, because its event types are unknown. This
    /// delivery waits until an operator has repaired the endpoint.
    pub async fn fan_out(&self, events: &[ReceivedEvent]) -> Result<Vec<DeliveryKey>, TableError> {
        let mut pending = Vec::new();
        let subscribers = self.table.get_webhook_subscribers().await?;
        for error in &subscribers.unreadable {
            tracing::error!(%error, error_type = "Table", "{ENDPOINT_UNREADABLE} and receives no events");
        }
        for error in subscribers.items.iter().filter_map(|subscriber| subscriber.error.as_ref()) {
            tracing::error!(%error, error_type = "Table", "{ENDPOINT_UNREADABLE}; its deliveries wait until an operator repairs it, and fail after four days");
        }
        for event in events {
            for subscriber in subscribers.items.iter().filter(|subscriber| subscriber.receives(&event.event_type)) {
                let key = DeliveryKey { endpoint: subscriber.endpoint, event: event.id.clone() };
                if self.create_delivery(&key, event).await? {
                    pending.push(key);
                }
            }
        }
        Ok(pending)
    }

    /// Creates the delivery `key` of `event`, unless it exists. Returns whether the delivery is pending.
    async fn create_delivery(&self, key: &DeliveryKey, event: &ReceivedEvent) -> Result<bool, TableError> {
        let new = Delivery::new(key.clone(), event.event_type.clone(), event.json.clone(), self.clock.now());
        if self.table.create_delivery(&new).await? {
            return Ok(true);
        }
        match self.table.get_delivery(key).await {
            Ok(stored) => Ok(stored.is_some_and(|stored| stored.status == DeliveryStatus::Pending)),
            // An unreadable delivery is only logged, so that the other deliveries do not have to wait until an operator
            // has repaired it.
            Err(error @ TableError::Unreadable { .. }) => {
                tracing::error!(%error, error_type = "Table", "{DELIVERY_UNREADABLE}, so it is not sent");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
