//! Outbound webhooks: delivers events to the merchant's endpoints by HTTP. Requests are signed, retried for three days,
//! and never sent to private network addresses. A slow or failing endpoint does not delay deliveries to other
//! endpoints: [`Schedule`] limits the number of deliveries in progress to each endpoint, and an endpoint to which all
//! deliveries fail is in back-off.

mod address;
mod address_policy;
mod deliverer;
mod endpoint_secrets;
mod endpoints;
mod fan_out;
mod log_messages;
mod next_try;
mod probe;
mod queue;
mod schedule;
mod sender;
mod signature;
mod worker;

pub use address::AllowedAddresses;
pub use address_policy::{AddressError, AddressPolicy, HostResolver};
pub use deliverer::Deliverer;
pub use endpoint_secrets::EndpointSecrets;
pub use endpoints::{EndpointChange, EndpointError, WebhookEndpoints, parse_event_type};
pub use log_messages::{
    DELIVERY_RETRIED, DELIVERY_UNREADABLE, ENDPOINT_DISABLED, ENDPOINT_UNREADABLE, EVENT_DELIVERED, EVENT_NOT_DELIVERED,
};
pub use next_try::NextTry;
pub use queue::{DeliveryQueue, QueueError, QueuedDelivery};
pub use schedule::{Schedule, ScheduleLimits};
pub use sender::{DELIVERY_TIMEOUT, Sender};
pub use signature::sign;
pub use worker::{DeliveryWorker, MemoryQueue};
