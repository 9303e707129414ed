//! The domain types of outbound webhooks: endpoints of the merchant, their signing secrets, and deliveries of events.

mod delivery;
mod endpoint;
mod endpoint_backoff;
mod endpoint_url;
mod logged_actions;
mod retry_schedule;
mod signing_secret;

pub use delivery::{Delivery, DeliveryKey, DeliveryResponse, DeliveryStatus};
pub use endpoint::{SECRETS_OVERLAP, WebhookEndpoint};
pub use endpoint_backoff::{BackoffState, EndpointBackoff, FAILURES_BEFORE_BACKOFF, LONGEST_WAIT};
pub use endpoint_url::{EndpointUrl, UrlError};
pub use retry_schedule::{MAX_DELIVERY_AGE, MAX_RETRY_AFTER, RETRY_DELAYS};
pub use signing_secret::{SecretError, SigningSecret, StoredSecret};
