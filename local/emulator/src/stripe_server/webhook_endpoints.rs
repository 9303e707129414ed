//! Webhook endpoints ("Webhook Endpoints" in the API reference). The stand-in sends no events.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::first_list_pages::first_list_page;
use super::{BegunAndResponse, JsonResponse, ServerState, invalid_request_response};

/// A webhook endpoint that was created by the API.
pub(super) struct WebhookEndpoint {
    id: String,
    url: String,
    enabled_events: Vec<String>,
}

impl WebhookEndpoint {
    /// Returns the JSON of the webhook endpoint, as Stripe's API shows it.
    fn json(&self) -> Value {
        json!({
            "id": self.id,
            "object": "webhook_endpoint",
            "url": self.url,
            "status": "enabled",
            "enabled_events": self.enabled_events,
            "livemode": false,
        })
    }
}

/// Returns whether `name` is the name of a parameter in the list `enabled_events`, such as `enabled_events[0]`.
fn is_event_parameter(name: &str) -> bool {
    let index = name.strip_prefix("enabled_events[").and_then(|rest| rest.strip_suffix(']'));
    index.is_some_and(|index| index.chars().all(|digit| digit.is_ascii_digit()))
}

impl ServerState {
    /// Creates a webhook endpoint ("Create a webhook endpoint").
    pub(super) fn create_webhook_endpoint(&mut self, parameters: &BTreeMap<String, String>) -> BegunAndResponse {
        if parameters.keys().any(|name| name != "url" && !is_event_parameter(name)) {
            return (false, invalid_request_response("parameter_unknown"));
        }
        let events = parameters.iter().filter(|(name, _)| is_event_parameter(name)).map(|(_, event)| event.clone());
        let enabled_events: Vec<String> = events.collect();
        let Some(url) = parameters.get("url").filter(|_| !enabled_events.is_empty()) else {
            return (false, invalid_request_response("parameter_missing"));
        };
        let id = format!("we_{:06}", self.webhook_endpoints.len() + 1);
        let endpoint = WebhookEndpoint { id, url: url.clone(), enabled_events };
        let shown = endpoint.json();
        self.webhook_endpoints.push(endpoint);
        (true, (StatusCode::OK, shown))
    }

    /// Lists the webhook endpoints ("List all webhook endpoints"). All of them fit on one list page.
    pub(super) fn list_webhook_endpoints(&self, parameters: &BTreeMap<String, String>) -> JsonResponse {
        let endpoints = self.webhook_endpoints.iter().rev().map(WebhookEndpoint::json);
        first_list_page("/v1/webhook_endpoints", &endpoints.collect::<Vec<_>>(), parameters)
    }
}
