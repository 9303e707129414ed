//! The entries of the action log about webhook endpoints and deliveries.

use ulid::Ulid;

use crate::action::{ActionField, FieldDifference, LoggedAction, NewAction};
use crate::outbound_webhook::delivery::{Delivery, DeliveryKey};
use crate::outbound_webhook::endpoint::WebhookEndpoint;

impl NewAction {
    /// Returns the entry of the action log for the change of a webhook endpoint; `before` is `None` if the endpoint is
    /// new.
    pub fn on_endpoint(&self, before: Option<&WebhookEndpoint>, after: &WebhookEndpoint) -> LoggedAction {
        let difference = FieldDifference::between(before, Some(after), fields_of_endpoint);
        let id = after.id.to_string();
        LoggedAction { item: Some(id.clone()), ..self.entry(&id, after.version, difference) }
    }

    /// Returns the entry of the action log for the removal of the webhook endpoint with the id `id`.
    pub fn on_removed_endpoint(&self, id: Ulid) -> LoggedAction {
        let id = id.to_string();
        LoggedAction { item: Some(id.clone()), ..self.entry(&id, 0, FieldDifference::default()) }
    }

    /// Returns the entry of the action log for a request to send an event again to a webhook endpoint. `delivery` is
    /// the restarted delivery.
    pub fn on_delivery(&self, delivery: &Delivery) -> LoggedAction {
        let DeliveryKey { endpoint, event } = &delivery.key;
        let id = format!("{endpoint} {event}");
        LoggedAction { item: Some(id.clone()), ..self.entry(&id, delivery.version, FieldDifference::default()) }
    }
}

/// Returns the fields of a webhook endpoint for the action log. The URL is hidden, because it may contain a secret.
fn fields_of_endpoint(endpoint: &WebhookEndpoint) -> Vec<ActionField> {
    let types: Vec<String> = endpoint.types.iter().map(ToString::to_string).collect();
    vec![
        ActionField::Logged("enabled", Some(endpoint.disabled_because.is_none().to_string())),
        ActionField::Logged("types", (!types.is_empty()).then(|| types.join(", "))),
        ActionField::Hidden("url", Some(endpoint.url.as_str().to_owned())),
    ]
}
