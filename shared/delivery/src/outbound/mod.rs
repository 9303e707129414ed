//! Outbound webhooks: delivers events to the merchant's endpoints by HTTP. Requests are signed, retried for three days,
//! and never sent to private network addresses. Endpoints do not wait for each other: [`Schedule`] limits the deliveries
//! in progress to each endpoint, and an endpoint that fails as a whole is in back-off.

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
