//! The Stripe account and its customers ("Customers" in the API reference), and the permissions of a restricted key.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{BegunAndResponse, JsonResponse, ServerState, stripe_error_response};

/// A customer that was created by the API.
pub(super) struct Customer {
    id: String,
    metadata: BTreeMap<String, String>,
}

/// Returns the error for a restricted key without `permission`. The message contains the permission ("Error handling").
pub(super) fn missing_permission_response(permission: &str) -> JsonResponse {
    let (status, mut body) = stripe_error_response(403, "invalid_request_error", None);
    body["error"]["message"] = Value::from(format!(
        "The provided key 'rk_test_*********ndin' does not have the required permissions for this endpoint on account \
         'acct_standin'. Having the '{permission}' permission would allow this request to continue."
    ));
    (status, body)
}

/// Returns the error for a customer that does not exist ("Error codes", `resource_missing`).
pub(super) fn missing_customer_response(status: u16) -> JsonResponse {
    let (status, mut body) = stripe_error_response(status, "invalid_request_error", Some("resource_missing"));
    body["error"]["param"] = "customer".into();
    (status, body)
}

/// Returns whether payments of the customer `id` are refused. An id that ends with `_gone` stands for a customer that
/// never existed, and an id that ends with `_deleted` for a deleted customer. All other customers can pay, also if a
/// test has not created them.
pub(super) fn is_missing_customer(id: &str) -> bool {
    id.ends_with("_gone") || id.ends_with("_deleted")
}

impl ServerState {
    /// Creates a customer ("Create a customer").
    pub(super) fn create_customer(&mut self, parameters: &BTreeMap<String, String>) -> BegunAndResponse {
        let metadata =
            |name: &str| name.strip_prefix("metadata[").and_then(|name| name.strip_suffix(']')).map(str::to_owned);
        if parameters.keys().any(|name| name != "description" && metadata(name).is_none()) {
            return (false, super::invalid_request_response("parameter_unknown"));
        }
        let named = parameters.iter().filter_map(|(name, value)| Some((metadata(name)?, value.clone())));
        let customer = Customer { id: format!("cus_made{:06}", self.customers.len() + 1), metadata: named.collect() };
        let shown = customer.json();
        self.customers.push(customer);
        (true, (StatusCode::OK, shown))
    }

    /// Returns the customer `id`; for a deleted customer, a response with `deleted: true` (Stripe's API
    /// reference: "Retrieve a customer").
    pub(super) fn retrieve_customer(&self, id: &str) -> JsonResponse {
        if id.ends_with("_deleted") || self.deleted_customers.contains(id) {
            return (StatusCode::OK, json!({"id": id, "object": "customer", "deleted": true}));
        }
        match self.customers.iter().find(|customer| customer.id == id) {
            Some(customer) => (StatusCode::OK, customer.json()),
            None => missing_customer_response(404),
        }
    }
}

impl Customer {
    /// Returns the JSON of the customer, as Stripe's API shows it.
    pub(super) fn json(&self) -> Value {
        json!({"id": self.id, "object": "customer", "metadata": self.metadata, "livemode": false})
    }
}
