//! The domain types of outbound webhooks: endpoints, secrets and deliveries.

mod delivery;
mod endpoint;
mod secret;
mod url;

pub use delivery::{Delivery, DeliveryKey, DeliveryResponse, DeliveryStatus, RETRY_DELAYS};
pub use endpoint::{SECRETS_OVERLAP, WebhookEndpoint};
pub use secret::{Secret, SecretError};
pub use url::{EndpointUrl, UrlError};
