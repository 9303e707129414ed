//! Refunds ("Create a refund", "List all refunds" in the API reference). Cards are given back at once.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, Books, Intent, MAX_PAGE_ITEMS, invalid};

/// A refund.
pub(super) struct Refund {
    pub id: String,
    pub status: &'static str,
    payment_intent: String,
    amount: i64,
    currency: String,
    metadata: BTreeMap<String, String>,
}

impl Refund {
    /// The next one, of `intent`.
    pub(super) fn new(before: &[Refund], intent: &Intent, amount: i64) -> Self {
        Self {
            id: format!("re_{:06}", before.len() + 1),
            status: "succeeded",
            payment_intent: intent.id.clone(),
            amount,
            currency: intent.currency.clone(),
            metadata: BTreeMap::new(),
        }
    }

    pub(super) fn in_status(self, status: &'static str) -> Self {
        Self { status, ..self }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "id": self.id,
            "object": "refund",
            "status": self.status,
            "amount": self.amount,
            "currency": self.currency,
            "failure_reason": (self.status == "failed").then_some("expired_or_canceled_card"),
            "payment_intent": self.payment_intent,
            "metadata": self.metadata,
        })
    }
}

impl Books {
    pub(super) fn create_refund(&mut self, parameters: &BTreeMap<String, String>) -> (bool, Answer) {
        let metadata =
            |name: &str| name.strip_prefix("metadata[").and_then(|name| name.strip_suffix(']')).map(str::to_owned);
        let is_known =
            |name: &String| ["payment_intent", "amount"].contains(&name.as_str()) || metadata(name).is_some();
        if !parameters.keys().all(is_known) {
            return (false, invalid("parameter_unknown"));
        }
        let named = parameters.get("payment_intent").map(String::as_str).unwrap_or_default();
        let Some(intent) = self.intents.iter().find(|intent| intent.id == named && intent.status == "succeeded") else {
            return (false, invalid("resource_missing"));
        };
        let before: i64 = self
            .refunds
            .iter()
            .filter(|refund| refund.payment_intent == named && refund.status != "failed")
            .map(|r| r.amount)
            .sum();
        let left = intent.amount - before;
        let asked = parameters.get("amount").map_or(Some(left), |amount| amount.parse().ok());
        let Some(amount) = asked.filter(|amount| *amount >= 1) else {
            return (false, invalid("parameter_invalid_integer"));
        };
        if left == 0 {
            return (false, invalid("charge_already_refunded"));
        }
        if amount > left {
            return (false, invalid("amount_too_large"));
        }
        let named_so = parameters.iter().filter_map(|(name, value)| Some((metadata(name)?, value.clone())));
        let refund = Refund { metadata: named_so.collect(), ..Refund::new(&self.refunds, intent, amount) };
        let shown = refund.json();
        self.refunds.push(refund);
        (true, (StatusCode::OK, shown))
    }

    /// The newest first.
    pub(super) fn list_refunds(&self, parameters: &BTreeMap<String, String>) -> Answer {
        const KNOWN: [&str; 3] = ["payment_intent", "limit", "starting_after"];
        if parameters.keys().any(|name| !KNOWN.contains(&name.as_str())) {
            return invalid("parameter_unknown");
        }
        let limit = parameters.get("limit").map_or(Some(10), |limit| limit.parse().ok());
        let Some(limit) = limit.filter(|limit| (1..=MAX_PAGE_ITEMS).contains(limit)) else {
            return invalid("parameter_invalid_integer");
        };
        let payment = parameters.get("payment_intent");
        let after = parameters.get("starting_after");
        let newest_first =
            self.refunds.iter().rev().skip_while(|refund| after.is_some_and(|after| refund.id != *after));
        let found: Vec<&Refund> = newest_first
            .skip(usize::from(after.is_some()))
            .filter(|refund| payment.is_none_or(|payment| refund.payment_intent == *payment))
            .collect();
        let data: Vec<Value> = found.iter().take(limit).map(|refund| refund.json()).collect();
        (StatusCode::OK, json!({"object": "list", "url": "/v1/refunds", "has_more": found.len() > limit, "data": data}))
    }
}
