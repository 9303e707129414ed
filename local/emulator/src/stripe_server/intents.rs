//! PaymentIntents ("PaymentIntents" in the API reference).

use std::collections::BTreeMap;

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::accounts::{is_missing_customer, missing_customer_response};
use super::charge_amounts::amount_error_response;
use super::first_list_pages::requested_creation_times;
use super::{
    BANK_PROCESSING_TIME, BegunAndResponse, JsonResponse, MAX_PAGE_ITEMS, PaymentMethodBehaviour, ServerState,
    StandInPaymentIntent, behaviour_of_payment_method, decline_json, invalid_request_response, stripe_error_response,
};

impl ServerState {
    /// Creates and confirms a PaymentIntent ("Create a PaymentIntent", with `confirm` and `off_session`).
    pub(super) fn create_intent(
        &mut self,
        parameters: &BTreeMap<String, String>,
        now: DateTime<Utc>,
    ) -> BegunAndResponse {
        const KNOWN_PARAMETERS: [&str; 9] = [
            "expand[0]",
            "amount",
            "currency",
            "customer",
            "payment_method",
            "confirm",
            "off_session",
            "automatic_payment_methods[enabled]",
            "automatic_payment_methods[allow_redirects]",
        ];
        let metadata =
            |name: &str| name.strip_prefix("metadata[").and_then(|name| name.strip_suffix(']')).map(str::to_owned);
        if parameters.keys().any(|name| !KNOWN_PARAMETERS.contains(&name.as_str()) && metadata(name).is_none()) {
            return (false, invalid_request_response("parameter_unknown"));
        }
        let get = |name: &str| parameters.get(name).map(String::as_str).unwrap_or_default();
        let Some(amount) = get("amount").parse::<i64>().ok().filter(|amount| *amount > 0) else {
            return (false, invalid_request_response("parameter_invalid_integer"));
        };
        let currency = get("currency").to_owned();
        if currency.len() != 3 || !currency.bytes().all(|letter| letter.is_ascii_lowercase()) {
            return (false, invalid_request_response("parameter_invalid"));
        }
        if let Some(error) = amount_error_response(amount, &currency) {
            return (false, error);
        }
        if [("confirm", "true"), ("off_session", "true")].iter().any(|(name, value)| get(name) != *value) {
            return (false, invalid_request_response("parameter_missing"));
        }
        // A payment that allows redirects needs a return URL. The stand-in supports no return URL, so redirects must be
        // disallowed.
        if get("automatic_payment_methods[allow_redirects]") != "never" {
            return (false, invalid_request_response("parameter_missing"));
        }
        if !get("customer").starts_with("cus_") {
            return (false, invalid_request_response("resource_missing"));
        }
        if is_missing_customer(get("customer")) {
            return (false, missing_customer_response(400));
        }
        let Some(behaviour) = behaviour_of_payment_method(get("payment_method")) else {
            return (false, invalid_request_response("resource_missing"));
        };
        let (status, error, bank_outcome) = match behaviour {
            PaymentMethodBehaviour::Succeeds => ("succeeded", None, None),
            PaymentMethodBehaviour::Declines(code) => {
                ("requires_payment_method", Some(self.decline_code.unwrap_or(code)), None)
            }
            PaymentMethodBehaviour::Processes(then) => ("processing", None, Some((now + BANK_PROCESSING_TIME, then))),
        };
        let named = parameters.iter().filter_map(|(name, value)| Some((metadata(name)?, value.clone())));
        let intent = StandInPaymentIntent {
            id: format!("pi_{:06}", self.intents.len() + 1),
            status,
            metadata: named.collect(),
            amount,
            currency,
            customer: get("customer").to_owned(),
            payment_method: get("payment_method").to_owned(),
            created: now,
            error,
            advice: self.advice,
            bank_outcome,
            misleading: None,
        };
        let is_expanded = parameters.get("expand[0]").is_some_and(|of| of == "latest_charge");
        let shown = intent.listed_json(is_expanded);
        self.intents.push(intent);
        match error {
            None => (true, (StatusCode::OK, shown)),
            Some(code) => {
                let mut error = decline_json(code, self.advice);
                error["payment_intent"] = shown;
                (true, (StatusCode::PAYMENT_REQUIRED, json!({"error": error})))
            }
        }
    }

    /// Cancels a PaymentIntent ("Cancel a PaymentIntent").
    pub(super) fn cancel_intent(&mut self, id: &str, parameters: &BTreeMap<String, String>) -> BegunAndResponse {
        if !parameters.is_empty() {
            return (false, invalid_request_response("parameter_unknown"));
        }
        let Some(intent) = self.intents.iter_mut().find(|intent| intent.id == id) else {
            return (false, stripe_error_response(404, "invalid_request_error", Some("resource_missing")));
        };
        if intent.status.starts_with("requires_") {
            intent.status = "canceled";
            return (true, (StatusCode::OK, intent.current_json()));
        }
        let (status, mut body) = invalid_request_response("payment_intent_unexpected_state");
        body["error"]["payment_intent"] = intent.current_json();
        (true, (status, body))
    }

    /// Lists the PaymentIntents, the newest first ("List all PaymentIntents").
    pub(super) fn list_intents(&self, parameters: &BTreeMap<String, String>) -> JsonResponse {
        const KNOWN_PARAMETERS: [&str; 6] =
            ["expand[0]", "customer", "created[gte]", "created[lt]", "limit", "starting_after"];
        if parameters.keys().any(|name| !KNOWN_PARAMETERS.contains(&name.as_str())) {
            return invalid_request_response("parameter_unknown");
        }
        let limit = parameters.get("limit").map_or(Some(10), |limit| limit.parse().ok());
        let Some(limit) = limit.filter(|limit| (1..=MAX_PAGE_ITEMS).contains(limit)) else {
            return invalid_request_response("parameter_invalid_integer");
        };
        let Some(range) = requested_creation_times(parameters) else {
            return invalid_request_response("parameter_invalid_integer");
        };
        let is_unknown = |customer: &String| is_missing_customer(customer) || self.deleted_customers.contains(customer);
        if parameters.get("customer").is_some_and(is_unknown) {
            return missing_customer_response(400);
        }
        let is_wanted = |intent: &&StandInPaymentIntent| {
            parameters.get("customer").is_none_or(|customer| intent.customer == *customer)
                && range.contains(&intent.created.timestamp())
        };
        let newest_first = self.intents.iter().rev();
        let found: Vec<&StandInPaymentIntent> = match parameters.get("starting_after") {
            None => newest_first.filter(is_wanted).collect(),
            Some(after) => newest_first.skip_while(|intent| intent.id != *after).skip(1).filter(is_wanted).collect(),
        };
        let is_expanded = parameters.get("expand[0]").is_some_and(|of| of == "data.latest_charge");
        let mut data: Vec<Value> = found.iter().take(limit).map(|intent| intent.listed_json(is_expanded)).collect();
        self.add_foreign_objects("/v1/payment_intents", parameters, &mut data);
        (
            StatusCode::OK,
            json!({"object": "list", "url": "/v1/payment_intents", "has_more": found.len() > limit, "data": data}),
        )
    }
}
