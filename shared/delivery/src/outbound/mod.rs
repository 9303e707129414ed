//! Outbound webhooks: events on their way to programs of the merchant's, by HTTP: signed, tried again for three days, and to no
//! address inside.

mod address;
mod deliverer;
mod sender;
mod signature;

pub use address::Reach;
pub use deliverer::{
    Deliverer, DeliveryQueue, ENDPOINT_DISABLED, ENDPOINT_UNREADABLE, EVENT_GIVEN_UP, FannedOut, Next, QueueError,
};
pub use sender::{Sender, TIMEOUT};
pub use signature::sign;
