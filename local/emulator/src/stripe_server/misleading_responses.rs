//! Responses of the stand-in that contradict its state, and objects of other programs in its lists. A correct client
//! neither charges twice because of such a response, nor fails because of such an object.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{JsonResponse, ServerState, StandInPaymentIntent, StripeFault, StripeServer};

/// How responses contradict a PaymentIntent that has succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MisleadingView {
    /// Until this time, lists and the response that created the PaymentIntent show it as `canceled`. A request for the
    /// PaymentIntent shows that it succeeded.
    CanceledUntilRead { until: DateTime<Utc> },
    /// Until this time, all responses show the PaymentIntent as `canceled`, with a charge that succeeded.
    CanceledWithPaidCharge { until: DateTime<Utc> },
    /// All responses show that the PaymentIntent succeeded, but that only this amount was received.
    ReceivedLess { amount: i64 },
}

/// Objects of other programs in the same account.
#[derive(Default)]
pub(super) struct ForeignObjects {
    /// The number of PaymentIntents, refunds and disputes of another program in each list.
    count: usize,
}

impl MisleadingView {
    /// Returns whether responses no longer mislead at `now`.
    pub(super) fn has_ended(self, now: DateTime<Utc>) -> bool {
        match self {
            Self::CanceledUntilRead { until } | Self::CanceledWithPaidCharge { until } => now >= until,
            Self::ReceivedLess { .. } => false,
        }
    }

    /// Returns the misleading JSON of `intent`, as lists show it, with its latest charge expanded if `is_expanded` is
    /// true.
    pub(super) fn listed_json(self, intent: &StandInPaymentIntent, is_expanded: bool) -> Value {
        let charge = intent.id.replace("pi_", "ch_");
        let with_charge = |mut shown: Value, status: &str| {
            if is_expanded {
                shown["latest_charge"] = intent.charge_json(&charge, status);
            }
            shown
        };
        match self {
            Self::CanceledUntilRead { .. } => with_charge(intent.json("canceled", is_expanded), "failed"),
            Self::CanceledWithPaidCharge { .. } => {
                let mut shown = with_charge(intent.json("canceled", is_expanded), "succeeded");
                shown["amount_received"] = intent.amount.into();
                shown
            }
            Self::ReceivedLess { amount } => {
                let mut shown = intent.json(intent.status, is_expanded);
                shown["amount_received"] = amount.into();
                shown
            }
        }
    }
}

/// Returns the JSON of the object `number` of another program in the list at `url`. Its status and its currency are
/// unknown to Dueday, and the fields that can be `null` are `null`.
fn foreign_object(url: &str, number: usize, created: i64) -> Value {
    let (id, object) = match url {
        "/v1/payment_intents" => ("pi_foreign", "payment_intent"),
        "/v1/refunds" => ("re_foreign", "refund"),
        _ => ("dp_foreign", "dispute"),
    };
    json!({
        "id": format!("{id}_{number}"),
        "object": object,
        "status": "on_hold",
        "amount": 100,
        "currency": "xyz",
        "customer": null,
        "payment_intent": (object != "payment_intent").then(|| format!("pi_foreign_{number}")),
        "payment_method": null,
        "created": created,
        "metadata": null,
        "reason": null,
        "latest_charge": null,
    })
}

impl ServerState {
    /// Retrieves the PaymentIntent `id` ("Retrieve a PaymentIntent" in the API reference).
    pub(super) fn retrieve_intent(&self, id: &str, parameters: &BTreeMap<String, String>) -> JsonResponse {
        let is_known = |(name, value): (&String, &String)| name == "expand[0]" && value == "latest_charge";
        if !parameters.iter().all(is_known) {
            return super::invalid_request_response("parameter_unknown");
        }
        let intent = self.intents.iter().find(|intent| intent.id == id);
        let shown = intent.map(|intent| intent.retrieved_json(!parameters.is_empty()));
        let foreign = (1..=self.foreign_objects.count).find(|number| id == format!("pi_foreign_{number}"));
        match shown.or_else(|| foreign.map(|number| foreign_object("/v1/payment_intents", number, 0))) {
            Some(shown) => (StatusCode::OK, shown),
            None => super::stripe_error_response(404, "invalid_request_error", Some("resource_missing")),
        }
    }

    /// Adds the objects of other programs to the first list page at `url`.
    pub(super) fn add_foreign_objects(&self, url: &str, parameters: &BTreeMap<String, String>, data: &mut Vec<Value>) {
        let is_filtered =
            ["customer", "payment_intent", "starting_after"].iter().any(|name| parameters.contains_key(*name));
        if is_filtered {
            return;
        }
        let created = data.first().and_then(|newest| newest["created"].as_i64()).unwrap_or_default();
        let foreign = (1..=self.foreign_objects.count).map(|number| foreign_object(url, number, created));
        data.splice(0..0, foreign);
    }

    /// Changes `response`, the response to the request `method_and_path`, if `fault` is a misleading response.
    pub(super) fn change_misleading_response(
        &mut self,
        fault: StripeFault,
        method_and_path: &str,
        (status, mut body): JsonResponse,
        now: DateTime<Utc>,
    ) -> JsonResponse {
        let is_charge = method_and_path == "POST /v1/payment_intents" && status == StatusCode::OK;
        let until = |hours: i64| now + TimeDelta::hours(hours);
        let view = match fault {
            StripeFault::CanceledUntilRead { hours } => MisleadingView::CanceledUntilRead { until: until(hours) },
            StripeFault::CanceledWithPaidCharge { hours } => {
                MisleadingView::CanceledWithPaidCharge { until: until(hours) }
            }
            StripeFault::ListedTwice => {
                if let Some(data) = body["data"].as_array_mut() {
                    let first = data.first().cloned();
                    data.splice(0..0, first);
                }
                return (status, body);
            }
            StripeFault::ForeignObjectListed => {
                let url = body["url"].as_str().unwrap_or_default().to_owned();
                if let Some(data) = body["data"].as_array_mut() {
                    data.insert(0, foreign_object(&url, 0, now.timestamp()));
                }
                return (status, body);
            }
            _ => return (status, body),
        };
        match self.intents.last_mut().filter(|intent| is_charge && intent.status == "succeeded") {
            Some(intent) => {
                intent.misleading = Some(view);
                (status, view.listed_json(intent, true))
            }
            None => (status, body),
        }
    }
}

impl StripeServer {
    /// Lets responses contradict the PaymentIntent `id`; `None` ends that.
    pub fn set_misleading_view(&self, id: &str, view: Option<MisleadingView>) {
        let mut state = self.lock_state();
        if let Some(intent) = state.intents.iter_mut().find(|intent| intent.id == id) {
            intent.misleading = view;
        }
    }

    /// Adds `count` PaymentIntents, refunds and disputes of another program, with a currency and a status that Dueday
    /// does not know, to the lists of the account.
    pub fn set_foreign_objects(&self, count: usize) {
        self.lock_state().foreign_objects.count = count;
    }

    /// Changes the currency of the PaymentIntent `id`, for example to a currency that Dueday does not know.
    pub fn set_currency_of_intent(&self, id: &str, currency: &str) {
        let mut state = self.lock_state();
        if let Some(intent) = state.intents.iter_mut().find(|intent| intent.id == id) {
            intent.currency = currency.to_owned();
        }
    }

    /// Changes the currency of the refund `id`, for example to a currency that Dueday does not know.
    pub fn set_currency_of_refund(&self, id: &str, currency: &str) {
        let mut state = self.lock_state();
        if let Some(refund) = state.refunds.iter_mut().find(|refund| refund.id == id) {
            refund.currency = currency.to_owned();
        }
    }

    /// Lets the status and the metadata of the refund `id` be `null`, which Stripe's API allows.
    pub fn hide_fields_of_refund(&self, id: &str) {
        let mut state = self.lock_state();
        if let Some(refund) = state.refunds.iter_mut().find(|refund| refund.id == id) {
            refund.has_null_fields = true;
        }
    }
}
