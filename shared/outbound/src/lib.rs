//! Outbound webhooks: delivers events to the merchant's endpoints by HTTP. Requests are signed, retried for three days,
//! and never sent to private network addresses. A slow or failing endpoint does not delay deliveries to other
//! endpoints: [`DeliveryScheduler`] limits the number of deliveries in progress to each endpoint, and an endpoint to
//! which all deliveries fail gets no requests for some time (back-off).
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod config;
mod deliverer;
mod delivery_queue;
mod due_deliveries;
mod endpoint_management;
mod endpoint_secrets;
mod endpoint_url_check;
mod fan_out;
mod log_messages;
mod next_try_time;
mod non_public_networks;
mod probe;
mod scheduler;
mod sender;
mod signature;
mod worker;

pub use config::*;
pub use deliverer::Deliverer;
pub use delivery_queue::{DeliveryQueue, QueueError};
pub use due_deliveries::SendDueError;
pub use endpoint_management::{EndpointChange, EndpointError, WebhookEndpoints, parse_event_type};
pub use endpoint_secrets::EndpointSecrets;
pub use endpoint_url_check::{AddressError, EndpointUrlCheck, HostResolver};
pub use log_messages::{
    DELIVERY_RETRIED, DELIVERY_UNREADABLE, ENDPOINT_DISABLED, ENDPOINT_UNREADABLE, EVENT_DELIVERED, EVENT_NOT_DELIVERED,
};
pub use next_try_time::NextTryTime;
pub use non_public_networks::AllowedAddresses;
pub use scheduler::{ConcurrencyLimits, DeliveryScheduler};
pub use sender::{DELIVERY_TIMEOUT, WebhookSender};
pub use signature::sign_webhook;
pub use worker::{DeliveryWorker, MemoryQueue};
