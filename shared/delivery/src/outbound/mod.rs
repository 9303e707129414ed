//! Outbound webhooks: delivers events to the merchant's endpoints by HTTP. Requests are signed, retried for three days,
//! and never sent to private network addresses.

mod address;
mod deliverer;
mod sender;
mod signature;

pub use address::AllowedAddresses;
pub use deliverer::{
    Deliverer, DeliveryQueue, ENDPOINT_DISABLED, ENDPOINT_UNREADABLE, EVENT_NOT_DELIVERED, FanOutResult, NextTry,
    QueueError,
};
pub use sender::{DELIVERY_TIMEOUT, Sender};
pub use signature::sign;
