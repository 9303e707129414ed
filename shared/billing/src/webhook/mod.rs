//! Outbound webhooks as values: endpoints, their secrets, and deliveries to them.

mod delivery;
mod endpoint;
mod secret;
mod url;

pub use delivery::{Answer, Delivery, DeliveryKey, DeliveryStatus, GAPS};
pub use endpoint::{SECRETS_OVERLAP, WebhookEndpoint};
pub use secret::{Secret, SecretError};
pub use url::{EndpointUrl, UrlError};
