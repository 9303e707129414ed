//! The account and its customers ("Customers" in the API reference), and the permissions of a restricted key.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, Books, error};

/// A customer that was created by the API.
pub(super) struct Customer {
    id: String,
    metadata: BTreeMap<String, String>,
}

/// "Error handling": a restricted key lacks `permission`, which the message names.
pub(super) fn forbidden(permission: &str) -> Answer {
    let (status, mut body) = error(403, "invalid_request_error", None);
    body["error"]["message"] = Value::from(format!(
        "The provided key 'rk_test_*********ndin' does not have the required permissions for this endpoint on account \
         'acct_standin'. Having the '{permission}' permission would allow this request to continue."
    ));
    (status, body)
}

/// "Error codes", `resource_missing`: there is no such customer.
pub(super) fn missing_customer(status: u16) -> Answer {
    let (status, mut body) = error(status, "invalid_request_error", Some("resource_missing"));
    body["error"]["param"] = "customer".into();
    (status, body)
}

/// Whether payments of the customer `id` are refused: the account never had it (`_gone`), or it was deleted (`_deleted`). All others
/// can pay, so that a test need not create them.
pub(super) fn is_missing(id: &str) -> bool {
    id.ends_with("_gone") || id.ends_with("_deleted")
}

impl Books {
    /// "Create a customer".
    pub(super) fn create_customer(&mut self, parameters: &BTreeMap<String, String>) -> (bool, Answer) {
        let metadata =
            |name: &str| name.strip_prefix("metadata[").and_then(|name| name.strip_suffix(']')).map(str::to_owned);
        if parameters.keys().any(|name| name != "description" && metadata(name).is_none()) {
            return (false, super::invalid("parameter_unknown"));
        }
        let named = parameters.iter().filter_map(|(name, value)| Some((metadata(name)?, value.clone())));
        let customer = Customer { id: format!("cus_made{:06}", self.customers.len() + 1), metadata: named.collect() };
        let shown = customer.json();
        self.customers.push(customer);
        (true, (StatusCode::OK, shown))
    }

    /// "Retrieve a customer": one that was deleted is named as such.
    pub(super) fn customer(&self, id: &str) -> Answer {
        if id.ends_with("_deleted") || self.unknown_customers.contains(id) {
            return (StatusCode::OK, json!({"id": id, "object": "customer", "deleted": true}));
        }
        match self.customers.iter().find(|customer| customer.id == id) {
            Some(customer) => (StatusCode::OK, customer.json()),
            None => missing_customer(404),
        }
    }
}

impl Customer {
    fn json(&self) -> Value {
        json!({"id": self.id, "object": "customer", "metadata": self.metadata, "livemode": false})
    }
}
