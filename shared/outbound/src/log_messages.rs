//! The log messages of outbound webhooks. Alarms in `template.yaml` match some of these messages, and the crate
//! `embedded_metrics` counts some of them.

/// The log message for a stored endpoint that cannot be read.
pub const ENDPOINT_UNREADABLE: &str = "a webhook endpoint cannot be read";
/// The log message for a stored delivery that cannot be read.
pub const DELIVERY_UNREADABLE: &str = "a webhook delivery cannot be read";
/// The log message if a delivery has finally failed, but its endpoint accepts other events.
pub const EVENT_NOT_DELIVERED: &str = "an event could not be delivered";
/// The log message if an endpoint is disabled, because a delivery has finally failed and the endpoint has accepted no
/// event since the delivery was created.
pub const ENDPOINT_DISABLED: &str = "a webhook endpoint is disabled";
/// The log message for an event that a webhook endpoint has accepted.
pub const EVENT_DELIVERED: &str = "an event was delivered";
/// The log message for a failed try of a delivery that will be tried again.
pub const DELIVERY_RETRIED: &str = "a delivery failed and will be retried";
