//! Checkout Sessions in setup mode ("Save payment details with Checkout"; "Checkout Sessions" in the API reference).

use std::collections::BTreeMap;

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{
    BegunAndResponse, JsonResponse, ServerState, behaviour_of_payment_method, invalid_request_response,
    stripe_error_response,
};
use sandbox::card_page;

/// The lifetime of a session: 24 hours, Stripe's default ("Expire a Session").
const SESSION_LIFETIME: TimeDelta = TimeDelta::hours(24);

/// A Checkout Session.
pub(super) struct CheckoutSession {
    id: String,
    url: String,
    customer: Option<String>,
    success_url: String,
    cancel_url: String,
    metadata: BTreeMap<String, String>,
    expires_at: DateTime<Utc>,
    /// The payment method that the customer chose, and the instant of the choice.
    payment_method: Option<(String, DateTime<Utc>)>,
}

impl CheckoutSession {
    pub(super) fn has_id(&self, id: &str) -> bool {
        self.id == id
    }

    /// Returns Stripe's status of the session at the time `now`.
    fn status(&self, now: DateTime<Utc>) -> &'static str {
        match &self.payment_method {
            Some(_) => "complete",
            None if now >= self.expires_at => "expired",
            None => "open",
        }
    }

    /// Returns the JSON of the session at the time `now`. If `is_expanded` is true, the SetupIntent and its payment
    /// method are objects, not ids.
    pub(super) fn json(&self, now: DateTime<Utc>, is_expanded: bool) -> Value {
        let id = format!("seti_{}", self.id);
        let intent = match &self.payment_method {
            Some((method, at)) if is_expanded => {
                let method = json!({"id": method, "object": "payment_method", "created": at.timestamp()});
                json!({"id": id, "object": "setup_intent", "status": "succeeded", "payment_method": method})
            }
            None if is_expanded => {
                json!({"id": id, "object": "setup_intent", "status": "requires_payment_method", "payment_method": null})
            }
            _ => json!(id),
        };
        let status = self.status(now);
        json!({
            "id": self.id,
            "object": "checkout.session",
            "mode": "setup",
            "status": status,
            "url": (status == "open").then_some(&self.url),
            "customer": self.customer,
            "expires_at": self.expires_at.timestamp(),
            "setup_intent": intent,
            "metadata": self.metadata,
            "livemode": false,
        })
    }
}

impl ServerState {
    /// Creates a session with a checkout page on this server, whose host name is `host` ("Create a Checkout Session").
    pub(super) fn create_session(
        &mut self,
        parameters: &BTreeMap<String, String>,
        host: &str,
        now: DateTime<Utc>,
    ) -> BegunAndResponse {
        const KNOWN_PARAMETERS: [&str; 8] = [
            "mode",
            "payment_method_types[0]",
            "success_url",
            "cancel_url",
            "client_reference_id",
            "customer",
            "customer_creation",
            "customer_email",
        ];
        if parameters.keys().any(|name| !KNOWN_PARAMETERS.contains(&name.as_str()) && !name.starts_with("metadata[")) {
            return (false, invalid_request_response("parameter_unknown"));
        }
        let metadata =
            |name: &str| name.strip_prefix("metadata[").and_then(|name| name.strip_suffix(']')).map(str::to_owned);
        let get = |name: &str| parameters.get(name).map(String::as_str).unwrap_or_default();
        if get("mode") != "setup" || get("payment_method_types[0]") != "card" {
            return (false, invalid_request_response("parameter_missing"));
        }
        if !["success_url", "cancel_url"].iter().all(|name| get(name).starts_with("http")) {
            return (false, invalid_request_response("url_invalid"));
        }
        // A session is either for an existing customer or creates a new customer.
        let customer = parameters.get("customer").cloned();
        if customer.is_some()
            && (parameters.contains_key("customer_email") || parameters.contains_key("customer_creation"))
        {
            return (false, invalid_request_response("parameter_invalid"));
        }
        if customer.as_deref().is_some_and(|customer| customer.ends_with("_gone")) {
            let (status, mut body) = invalid_request_response("resource_missing");
            body["error"]["param"] = "customer".into();
            return (false, (status, body));
        }
        let id = format!("cs_test_{:06}", self.sessions.len() + 1);
        let session = CheckoutSession {
            url: format!("http://{host}/c/pay/{id}"),
            id,
            customer: customer.or_else(|| {
                (get("customer_creation") == "always").then(|| format!("cus_{:06}", self.sessions.len() + 1))
            }),
            success_url: get("success_url").to_owned(),
            cancel_url: get("cancel_url").to_owned(),
            metadata: parameters.iter().filter_map(|(name, value)| Some((metadata(name)?, value.clone()))).collect(),
            expires_at: now + SESSION_LIFETIME,
            payment_method: None,
        };
        let shown = session.json(now, false);
        self.sessions.push(session);
        (true, (StatusCode::OK, shown))
    }

    /// Returns the session `id`, with its SetupIntent and payment method expanded if the request asks for that
    /// ("Retrieve a Session").
    pub(super) fn retrieve_session(
        &self,
        id: &str,
        parameters: &BTreeMap<String, String>,
        now: DateTime<Utc>,
    ) -> JsonResponse {
        let is_expanded = match parameters.iter().collect::<Vec<_>>().as_slice() {
            [] => false,
            [(name, value)] if *name == "expand[]" && *value == "setup_intent.payment_method" => true,
            _ => return invalid_request_response("parameter_unknown"),
        };
        match self.sessions.iter().find(|session| session.id == id) {
            Some(session) => (StatusCode::OK, session.json(now, is_expanded)),
            None => stripe_error_response(404, "invalid_request_error", Some("resource_missing")),
        }
    }

    /// Returns the response to a request of the customer's browser; `None` if `path` is not a checkout page.
    pub(super) fn respond_to_browser(
        &mut self,
        method: &Method,
        path: &str,
        body: &str,
        now: DateTime<Utc>,
    ) -> Option<Response> {
        let id = path.strip_prefix("/c/pay/")?;
        let Some(session) = self.sessions.iter_mut().find(|session| session.id == id) else {
            return Some((StatusCode::NOT_FOUND, "the checkout page does not exist").into_response());
        };
        if session.status(now) != "open" {
            return Some(card_page::redirect_to_return_url(&session.cancel_url));
        }
        if method != Method::POST {
            return Some(card_page::render_card_page(&session.cancel_url));
        }
        let method = card_page::submitted_payment_method(body)
            .map(String::from)
            .filter(|method| behaviour_of_payment_method(method).is_some());
        session.payment_method = method.map(|method| (method, now));
        Some(card_page::redirect_to_return_url(&session.success_url))
    }
}
