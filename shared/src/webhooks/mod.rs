//! Events on their way to programs of the merchant's, by HTTP: signed, tried again for three days, and to no address inside.

mod address;
mod deliverer;
mod delivery;
mod endpoint;
mod secret;
mod sender;
mod sqs;

pub use address::Reach;
pub use deliverer::{Deliverer, DeliveryQueue, FannedOut, Next, QueueError};
pub use delivery::{Delivery, DeliveryKey, DeliveryStatus, GAPS};
pub use endpoint::{SECRETS_OVERLAP, WebhookEndpoint};
pub use secret::{Secret, SecretError};
pub use sender::{Answer, EndpointUrl, Sender, TIMEOUT, UrlError};
pub use sqs::SqsQueue;
