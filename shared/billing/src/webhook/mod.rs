//! The domain types of outbound webhooks: endpoints of the merchant, their signing secrets, and deliveries of events.

mod backoff;
mod delivery;
mod endpoint;
mod endpoint_url;
mod logged_actions;
mod signing_secret;

pub use backoff::{BackoffState, EndpointBackoff, FAILURES_BEFORE_BACKOFF, LONGEST_WAIT};
pub use delivery::{Delivery, DeliveryKey, DeliveryResponse, DeliveryStatus, MAX_DELIVERY_AGE, RETRY_DELAYS};
pub use endpoint::{SECRETS_OVERLAP, WebhookEndpoint};
pub use endpoint_url::{EndpointUrl, UrlError};
pub use signing_secret::{Secret, SecretError, StoredSecret};
