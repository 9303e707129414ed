//! The domain types of outbound webhooks: endpoints of the merchant, their signing secrets, and deliveries of events.

mod actions;
mod backoff;
mod delivery;
mod endpoint;
mod secret;
mod url;

pub use backoff::{BackoffState, EndpointBackoff, FAILURES_BEFORE_BACKOFF, LONGEST_WAIT};
pub use delivery::{Delivery, DeliveryKey, DeliveryResponse, DeliveryStatus, MAX_DELIVERY_AGE, RETRY_DELAYS};
pub use endpoint::{SECRETS_OVERLAP, WebhookEndpoint};
pub use secret::{Secret, SecretError, StoredSecret};
pub use url::{EndpointUrl, UrlError};
