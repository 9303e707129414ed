//! Refunds ("Create a refund", "List all refunds" in the API reference). A card refund succeeds immediately.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::first_list_pages::requested_creation_times;
use super::{
    BegunAndResponse, JsonResponse, MAX_PAGE_ITEMS, ServerState, StandInPaymentIntent, invalid_request_response,
};

/// A refund.
pub(super) struct Refund {
    pub id: String,
    pub status: &'static str,
    pub amount: i64,
    payment_intent: String,
    pub currency: String,
    created: i64,
    metadata: BTreeMap<String, String>,
    /// Whether the status and the metadata are shown as `null`.
    pub has_null_fields: bool,
}

impl Refund {
    /// Creates a refund of `amount` of the PaymentIntent `intent`. `before` contains all existing refunds; their number
    /// determines the id of the new refund.
    pub(super) fn new(before: &[Refund], intent: &StandInPaymentIntent, amount: i64, now: DateTime<Utc>) -> Self {
        Self {
            id: format!("re_{:06}", before.len() + 1),
            status: "succeeded",
            payment_intent: intent.id.clone(),
            amount,
            currency: intent.currency.clone(),
            created: now.timestamp(),
            metadata: BTreeMap::new(),
            has_null_fields: false,
        }
    }

    /// Returns this refund with another status.
    pub(super) fn with_status(self, status: &'static str) -> Self {
        Self { status, ..self }
    }

    /// Returns the JSON of the refund, as Stripe's API shows it.
    pub(super) fn json(&self) -> Value {
        json!({
            "id": self.id,
            "object": "refund",
            "status": (!self.has_null_fields).then_some(self.status),
            "amount": self.amount,
            "currency": self.currency,
            "failure_reason": (self.status == "failed").then_some("expired_or_canceled_card"),
            "payment_intent": self.payment_intent,
            "created": self.created,
            "metadata": (!self.has_null_fields).then_some(&self.metadata),
        })
    }
}

impl ServerState {
    /// Refunds the requested amount of a PaymentIntent. Without an amount, refunds the whole remaining amount ("Create
    /// a refund").
    pub(super) fn create_refund(
        &mut self,
        parameters: &BTreeMap<String, String>,
        now: DateTime<Utc>,
    ) -> BegunAndResponse {
        let metadata =
            |name: &str| name.strip_prefix("metadata[").and_then(|name| name.strip_suffix(']')).map(str::to_owned);
        let is_known =
            |name: &String| ["payment_intent", "amount"].contains(&name.as_str()) || metadata(name).is_some();
        if !parameters.keys().all(is_known) {
            return (false, invalid_request_response("parameter_unknown"));
        }
        let named = parameters.get("payment_intent").map(String::as_str).unwrap_or_default();
        let Some(intent) = self.intents.iter().find(|intent| intent.id == named && intent.status == "succeeded") else {
            return (false, invalid_request_response("resource_missing"));
        };
        let before: i64 = self
            .refunds
            .iter()
            .filter(|refund| refund.payment_intent == named && refund.status != "failed")
            .map(|r| r.amount)
            .sum();
        let left = intent.amount - before;
        let amount_to_refund = parameters.get("amount").map_or(Some(left), |amount| amount.parse().ok());
        let Some(amount) = amount_to_refund.filter(|amount| *amount >= 1) else {
            return (false, invalid_request_response("parameter_invalid_integer"));
        };
        if left == 0 {
            return (false, invalid_request_response("charge_already_refunded"));
        }
        if amount > left {
            return (false, invalid_request_response("amount_too_large"));
        }
        let metadata_entries = parameters.iter().filter_map(|(name, value)| Some((metadata(name)?, value.clone())));
        let refund = Refund { metadata: metadata_entries.collect(), ..Refund::new(&self.refunds, intent, amount, now) };
        let shown = refund.json();
        self.refunds.push(refund);
        (true, (StatusCode::OK, shown))
    }

    /// Lists the refunds, the newest first.
    pub(super) fn list_refunds(&self, parameters: &BTreeMap<String, String>) -> JsonResponse {
        let refunds = self.refunds.iter().map(|refund| ListedObject {
            id: &refund.id,
            payment_intent: &refund.payment_intent,
            created: refund.created,
            json: refund.json(),
        });
        self.list_page("/v1/refunds", refunds.rev(), parameters)
    }
}

/// A refund or a dispute in a list, with the values by which the list can be filtered.
pub(super) struct ListedObject<'a> {
    pub id: &'a str,
    pub payment_intent: &'a str,
    /// The time of creation, in seconds since 1970.
    pub created: i64,
    pub json: Value,
}

impl ServerState {
    /// Returns the page of the list `newest_first` that `parameters` select ("Pagination" in the API reference).
    pub(super) fn list_page<'a>(
        &self,
        url: &str,
        newest_first: impl Iterator<Item = ListedObject<'a>>,
        parameters: &BTreeMap<String, String>,
    ) -> JsonResponse {
        const KNOWN_PARAMETERS: [&str; 5] =
            ["payment_intent", "created[gte]", "created[lt]", "limit", "starting_after"];
        if parameters.keys().any(|name| !KNOWN_PARAMETERS.contains(&name.as_str())) {
            return invalid_request_response("parameter_unknown");
        }
        let limit = parameters.get("limit").map_or(Some(10), |limit| limit.parse().ok());
        let range = requested_creation_times(parameters);
        let (Some(limit), Some(range)) = (limit.filter(|limit| (1..=MAX_PAGE_ITEMS).contains(limit)), range) else {
            return invalid_request_response("parameter_invalid_integer");
        };
        let (payment, after) = (parameters.get("payment_intent"), parameters.get("starting_after"));
        let found: Vec<Value> = newest_first
            .skip_while(|listed| after.is_some_and(|after| listed.id != *after))
            .skip(usize::from(after.is_some()))
            .filter(|listed| payment.is_none_or(|payment| listed.payment_intent == *payment))
            .filter(|listed| range.contains(&listed.created))
            .map(|listed| listed.json)
            .collect();
        let has_more = found.len() > limit;
        let mut data: Vec<Value> = found.into_iter().take(limit).collect();
        self.add_foreign_objects(url, parameters, &mut data);
        (StatusCode::OK, json!({"object": "list", "url": url, "has_more": has_more, "data": data}))
    }
}
